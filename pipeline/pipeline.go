// Package pipeline moves changes from the source into the log and from the log into the sinks.
//
// A Pipeline runs its tables side by side. Each table has one log, and one life at a time: claim the log,
// read shards into it (ingest.go), apply it to each sink in order (apply.go), write back how far that is
// (marks.go), trim what nobody needs. After any doubt the life ends and the next one goes on from what is
// stored (Rule 4).
package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
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
	Services *Services // to which the clients of the services report; nil: nobody does
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
	// Lead is how far versions may run ahead of creation times before Bigtable must be asked for more. Only a
	// burst of more than a thousand changes a second in one shard gets there.
	Lead time.Duration
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

// Pipeline runs tables until its context ends.
type Pipeline struct {
	o        Options
	src      *source.Source
	queue    *queue.Queue
	sink     *bigtable.Client
	log      *zap.Logger
	tables   []*table
	shared   *apply.Shared
	refusals refusals

	declaring sync.Mutex
	families  map[string]map[string][]string // target → source → its families, as far as compiled
}

// New wires a pipeline. arch may be nil.
func New(o Options, src *source.Source, q *queue.Queue, sink *bigtable.Client, arch Archive,
	log *zap.Logger, reg prometheus.Registerer) *Pipeline {
	o.Periods = o.Periods.withDefaults()
	if o.Lanes == 0 {
		o.Lanes = 256
	}
	if o.Memory == 0 {
		o.Memory = 96 << 20
	}
	p := &Pipeline{o: o, src: src, queue: q, sink: sink, log: log, families: map[string]map[string][]string{}}
	if o.Services == nil {
		p.o.Services = &Services{}
	}
	p.shared = apply.NewShared(apply.Limits{Memory: o.Memory, Lanes: o.Lanes, Tables: len(o.Tables)}, sink, arch, p.now)
	registerMetrics(reg, p)
	m := apply.NewMetrics(reg)
	for _, t := range o.Tables {
		p.tables = append(p.tables, newTable(p, t, m))
	}
	return p
}

// Run works until ctx ends, then drains: it stops reading, applies what the log holds, writes the marks and
// releases the logs, within Periods.Shutdown. It returns nil after that. A *RefusedError says that no table can run,
// for each one's state is refused; everything else that goes wrong halts one table, is retried, and leaves the others
// running.
func (p *Pipeline) Run(ctx context.Context) error {
	defer p.keepQueue(ctx)()
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range p.tables {
		g.Go(func() error { return t.run(ctx) })
	}
	return g.Wait()
}

// declare tells the sink which families a target has, once the mappings of all tables that write to it are
// compiled: with fewer, it would take those of the others for somebody else's.
func (p *Pipeline) declare(target, source string, families []transform.Family) {
	p.declaring.Lock()
	defer p.declaring.Unlock()
	if p.families[target] == nil {
		p.families[target] = map[string][]string{}
	}
	var names []string
	for _, f := range families {
		names = append(names, f.Name)
	}
	p.families[target][source] = names
	var all []string
	for _, t := range p.o.Tables {
		if t.Target != target {
			continue
		}
		names, compiled := p.families[target][t.Source]
		if !compiled {
			return
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	p.sink.Declare(target, slices.Compact(all))
}

// now returns the service's clock; our own until the service has told its time.
func (p *Pipeline) now() change.Millis {
	if ms, ok := p.src.Now(); ok {
		return ms
	}
	return time.Now().UnixMilli()
}
