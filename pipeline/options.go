package pipeline

import (
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// Options of a pipeline. Periods that are zero get the defaults.
type Options struct {
	Name   string // identity of the stored state
	Owner  string // this process, unique per start
	Tables []Table
	Start  Start
	Memory int64 // bytes of changes between the log and the sinks, all tables together
	Lanes  int   // per table; about as many work at once, all tables together
	// Upgrade raises logs of an older format to the newest; older replicators then refuse them.
	Upgrade bool

	Periods  Periods
	Services *Services // to which the clients of the services report; nil: none does
}

// Table is one source table and its target.
type Table struct {
	Source   string
	Target   string
	OnReject string // letter | halt
	Archive  bool   // TTL deletes become archival events
	// Compile compiles the mapping for the table as DynamoDB describes it.
	Compile func(source.TableInfo) (*transform.Program, error)
}

// Archive makes archival events durable before it returns nil; at least once, with stable ids.
type Archive = apply.Archive

// Start is where the first life of a table begins to read; used only while the log holds no start.
type Start struct {
	Latest bool
	At     time.Time // zero: trim horizon
}

// Periods are the times of the protocol. Tests shorten them.
type Periods struct {
	ClaimTTL time.Duration // a log that has not moved for so long may be taken over
	Beat     time.Duration // at most TTL/3
	Listing  time.Duration // between complete listings of a stream
	Describe time.Duration // between looks at the table for a new stream ARN
	Mark     time.Duration // between mark entries
	Trim     time.Duration
	Retry    time.Duration // of what halted
	Shutdown time.Duration // to drain after the first signal
	Late     time.Duration // how far behind a table may be before it must be seen to move, or is not ready
	// Lead is how far versions may run ahead of creation times before Bigtable must be asked for more. Only a burst of
	// more than a thousand changes a second in one shard gets there.
	Lead time.Duration
}

func (o Options) withDefaults() Options {
	o.Periods = o.Periods.withDefaults()
	if o.Lanes == 0 {
		o.Lanes = 256
	}
	if o.Memory == 0 {
		o.Memory = 96 << 20
	}
	if o.Services == nil {
		o.Services = &Services{}
	}
	return o
}

func (p Periods) withDefaults() Periods {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&p.ClaimTTL, 15*time.Second)
	def(&p.Beat, p.ClaimTTL/3)
	def(&p.Listing, 5*time.Minute)
	def(&p.Describe, 30*time.Second)
	def(&p.Mark, time.Second)
	def(&p.Trim, 10*time.Second)
	def(&p.Retry, 60*time.Second)
	def(&p.Shutdown, 25*time.Second)
	def(&p.Late, DefaultLate)
	def(&p.Lead, 10*time.Minute)
	return p
}

// ingest returns the periods that reading and writing need.
func (p Periods) ingest() ingest.Periods {
	return ingest.Periods{
		Beat: p.Beat, Mark: p.Mark, Trim: p.Trim, Listing: p.Listing, Describe: p.Describe, Shutdown: p.Shutdown,
	}
}

// DefaultLate is how far a table may be behind and count as ready: an idle shard is asked every idle_poll, and the
// children of a shard that ended are listed within a minute and a half.
const DefaultLate = 2 * time.Minute
