package pipeline

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/pipeline/tracing"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// Options of a pipeline. Periods that are zero get the defaults.
type Options struct {
	Name   string // identity of the stored state
	Owner  string // this process, unique per start
	Build  string // version of the program, for the other processes
	Tables []Table
	Grows  bool // tables may be added while it runs: refusals of all that there are never end it
	Start  Start
	Memory int64 // bytes of changes between the log and the sinks, all tables together
	// CopyMemory bounds the pages of backfills that wait until the stream has caught up with them,
	// all tables together.
	CopyMemory int64
	Lanes      int // of a table; 0: by the number of tables
	Calls      int // in work at once, all tables together; 0: by Memory
	// Processors that this process has, for how much it can carry; 0: as many as its control group
	// has.
	Processors float64
	// Scratch is the directory of the sorted runs of whole-table resyncs.
	Scratch string
	// PastHour is the file with the charts of the last hour, which the next process continues; "":
	// there is none.
	PastHour string
	// Archive is where deleted items go that a mapping archives; nil: nowhere.
	Archive *archiving.Place
	// Adopt lets a first start take a target that another pipeline has written: its own versions
	// then begin above every guard found there.
	Adopt bool

	Periods  Periods
	Tracer   *tracing.Tracer // of frames; nil: they are not traced
	Services *Services       // to which the clients of the services report; nil: none does
}

// Table is one source table and its target.
type Table struct {
	Source   string
	Target   string // "": none, deletions are archived and that is all
	OnReject string // letter | halt
	Archive  Archive
	Backfill Backfill
	OnGap    string // wait | heal; empty: wait
	// Late is how far behind the table may be before it counts as late; 0: Periods.Late.
	Late   time.Duration
	Verify Verify // the continuous comparison
	// Sole is set when no other table may have the target, in any replicator of the pipeline:
	// tables that are found are compiled independently of each other, and replicas may find them in
	// another order.
	Sole bool
	// NewAfter returns the first start of the pipeline, a time of the service, 0 before it. A table
	// that was created later is not copied unless Backfill requires it: its stream holds every
	// change since. Nil: that does not matter.
	NewAfter func(context.Context) (change.Millis, error)
	// Heartbeat items, which are in no row; the Source leaves them out of what it reads.
	Heartbeat Heartbeat
	// Compile compiles the mapping for the table as DynamoDB describes it. Its file is read again
	// each time.
	Compile func(source.TableInfo) (*transform.Program, error)
	// Sharing compiles the mappings of the other tables with the same target. Nil: there are none.
	Sharing func(source.TableInfo) ([]*transform.Program, error)
	// CompileKept compiles a mapping of the table as it is stored beside its hash (transform.Kept),
	// with all programs of the target that it belongs to. Nil: no mapping can be accepted.
	CompileKept func(info source.TableInfo, text []byte) (own *transform.Program, all []*transform.Program, err error)
}

// Archive selects what of a table is archived, and how.
type Archive struct {
	On      bool          // items that its mapping archives go to Options.Archive
	Classes apply.Classes // of deletions that are archived besides those by TTL
	Form    object.Options
	Roll    time.Duration // how long an event waits for its object at most
}

// Backfill sets how items reach the target that the table held before its stream was read. The
// first start alone uses From, URL, Bucket and Prefix, and stores its decision in the log; the rest
// holds for every reading of the table.
type Backfill struct {
	From                string  // scan | export | none; empty: scan if the pipeline is new, else none
	ByWorkers           bool    // workers outside the daemon copy an export; of the first start alone, too
	URL, Bucket, Prefix string  // of an export: one that exists, or where to the first start asks for one
	ReadUnits           float64 // read capacity units per second; 0: by Percent
	Percent             float64 // of the provisioned capacity; 0 with ReadUnits 0: the default
	Segments            int     // of a scan; 0: by the table's size
	WriteRows           float64 // rows per second; 0: no limit of its own
}

// Verify sets how many read capacity units per second the continuous comparison takes: absolute, or
// a percentage of the provisioned capacity. Both 0: there is no such comparison.
type Verify struct{ ReadUnits, Percent float64 }

// Start is where the first life of a table begins to read.
type Start = staterow.Start

// Twice as many lanes as Bigtable may have calls of a table in flight, unless there are many
// tables: a lane takes 120 bytes.
const (
	mostLanes  = 4096
	leastLanes = 512
	allLanes   = 64 << 10
)

// Lanes returns how many lanes each of so many tables has, and so at most how many calls in flight.
func Lanes(tables int) int { return max(leastLanes, min(mostLanes, allLanes/max(tables, 1))) }

func (o Options) withDefaults() Options {
	o.Periods = o.Periods.WithDefaults()
	if o.Lanes == 0 {
		o.Lanes = Lanes(len(o.Tables))
	}
	if o.Memory == 0 {
		o.Memory = 96 << 20
	}
	if o.Calls == 0 {
		o.Calls = apply.CallsIn(o.Memory)
	}
	if o.Processors == 0 {
		o.Processors = host.Processors()
	}
	if o.CopyMemory == 0 {
		o.CopyMemory = 48 << 20
	}
	if o.Services == nil {
		o.Services = &Services{}
	}
	return o
}

// RefusedError means that a table's stored state is not this pipeline's, and holds what to do.
type RefusedError = outcome.RefusedError

// What is known about the tables, see package status.
type (
	Status        = status.Whole
	TableStatus   = status.Table
	Services      = status.Services
	ServiceChange = status.ServiceChange
)

// Summarize joins the tables' statuses.
func Summarize(pipeline string, tables []TableStatus) Status {
	return status.Summarize(pipeline, tables)
}
