package replay

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/shadow/exchange"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/transform/access"
	"github.com/tailrace-cdc/replicator/verify"
)

// Table is a source table of which reads are replayed.
type Table struct {
	Name   string
	Number int // among the tables of Side.Settler
	Schema change.KeySchema
	Whole  map[string]bool // the indexes that have all attributes of their items
	Side   *Side
}

// Side is a target and its source tables.
type Side struct {
	Settler *verify.Settler // decides about items
	Looking *verify.Settler // compares rows with answers; several goroutines use it at once
	// Rows returns the rows of a range, which is up to the end of the table where end is "".
	Rows func(start, end string) verify.Target
	// Read reads what an application would, up to a limit of rows: the newest cells of some families. No
	// families are all.
	Read func(ctx context.Context, start, end string, families []string, limit int) error

	waiting *waiting
}

// Mismatch is an item that a read in Bigtable does not return as DynamoDB does.
type Mismatch struct {
	Pattern string   `json:"pattern"`
	Table   string   `json:"table"`
	Key     string   `json:"key"` // in DynamoDB JSON
	Kinds   []string `json:"kinds"`
	Rows    [][]byte `json:"rows,omitempty"` // keys of the rows that differ, in base64
}

// Options configure a Replayer. All are required.
type Options struct {
	Reader *pattern.Reader
	Counts *pattern.Collector
	Tables []Table
	// Mismatch gets one mismatch at a time. One that it cannot keep is counted like the others.
	Mismatch func(Mismatch) error
	Warn     func(format string, args ...any) // of what has no key and no value
}

// Limits of what waits.
const (
	workers     = 4
	maxReads    = 256      // that wait for a worker
	maxWaiting  = 64 << 20 // bytes of them, with those that are replayed
	maxSettling = 10_000   // items of one target that wait for a decision
	maxRows     = 10_000   // of one read
	maxFinders  = 10_000   // forms of reads
)

// The reasons for which a read is not replayed, or nothing is decided about an item.
const (
	Failed     pattern.Reason = "failed"     // the answer is an error, or was cut off
	Large      pattern.Reason = "large"      // the answer is longer than is taken along, or the range has too many rows
	Busy       pattern.Reason = "busy"       // too many reads or items wait
	NoMapping  pattern.Reason = "no mapping" // the table is not replicated
	NoRead     pattern.Reason = "no read"    // no rows serve the read
	Declared   pattern.Reason = "declared"   // `reads` declares it, with a key that only its author can make
	NoKey      pattern.Reason = "key"        // the mapping makes no row key of the values
	Projection pattern.Reason = "projection" // the answer has a part of the items' attributes
	NotRunning pattern.Reason = "not running"
	Unreadable pattern.Reason = "answer"   // the answer cannot be parsed
	Refused    pattern.Reason = "refused"  // the mapping does not take the item
	Changing   pattern.Reason = "changing" // the item changed each time that it was read
	Unproven   pattern.Reason = "unproven" // other items may write the cell that differs, or the log does not reach back
	Ended      pattern.Reason = "ended"    // the run ended first
	Bigtable   pattern.Reason = "bigtable"
)

// Replayer replays reads.
type Replayer struct {
	o      Options
	tables map[string]*Table
	sides  []*Side
	reads  chan read
	held   atomic.Int64 // bytes of reads that wait or are replayed

	mu      sync.Mutex
	finders map[string]*access.Finder // by the ID of a pattern

	showing sync.Mutex // held while a mismatch is shown
	unshown bool       // the last one was not kept
}

// read is a request that waits for a worker.
type read struct {
	request  pattern.Request
	exchange *exchange.Exchange
}

// New returns a replayer.
func New(o Options) *Replayer {
	r := &Replayer{
		o: o, tables: map[string]*Table{}, reads: make(chan read, maxReads), finders: map[string]*access.Finder{},
	}
	for i := range o.Tables {
		t := &o.Tables[i]
		r.tables[t.Name] = t
		if !slices.Contains(r.sides, t.Side) {
			t.Side.waiting = newWaiting()
			r.sides = append(r.sides, t.Side)
		}
	}
	return r
}

// Offer takes the reads of a request with their answer, or counts why not. It never waits.
func (r *Replayer) Offer(request pattern.Request, x *exchange.Exchange) {
	if len(request.Asked) == 0 {
		return
	}
	if x.Status != 200 || x.Cut {
		r.skipAll(request, Failed)
		return
	}
	size := x.Memory()
	if r.held.Add(size) <= maxWaiting {
		select {
		case r.reads <- read{request, x}:
			return
		default:
		}
	}
	r.held.Add(-size)
	r.skipAll(request, Busy)
}

// Close ends Run when all reads are replayed and their items are settled. Nothing is offered behind
// it.
func (r *Replayer) Close() { close(r.reads) }

// Run replays until Close, and returns nil. Behind the end of ctx reads are counted as not replayed.
func (r *Replayer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var replayed sync.WaitGroup
	for range workers {
		replayed.Add(1)
		g.Go(func() error {
			defer replayed.Done()
			r.work(ctx)
			return nil
		})
	}
	done := make(chan struct{})
	g.Go(func() error {
		replayed.Wait()
		close(done)
		return nil
	})
	for _, s := range r.sides {
		g.Go(func() error {
			r.settle(ctx, s, done)
			return nil
		})
	}
	return g.Wait()
}

func (r *Replayer) work(ctx context.Context) {
	for x := range r.reads {
		if ctx.Err() == nil {
			r.replay(ctx, &x)
		} else {
			r.skipAll(x.request, Ended)
		}
		r.held.Add(-x.exchange.Memory())
	}
}

// show shows a mismatch. The first one that is not kept is warned of.
func (r *Replayer) show(m Mismatch) {
	r.showing.Lock()
	defer r.showing.Unlock()
	err := r.o.Mismatch(m)
	if err != nil && !r.unshown {
		r.o.Warn("mismatches are counted, and not kept: %v", err)
	}
	r.unshown = err != nil
}

func (r *Replayer) skipAll(request pattern.Request, why pattern.Reason) {
	for i := range request.Asked {
		r.skip(&request.Asked[i], why)
	}
}

func (r *Replayer) skip(a *pattern.Asked, why pattern.Reason) {
	r.o.Counts.Replay(&a.Of, func(c *pattern.Replay) { c.Skip(why, 1) })
}

// finder returns where the rows of the reads of a pattern are; nil without a mapping.
func (r *Replayer) finder(p *pattern.Pattern) *access.Finder {
	id := p.ID()
	r.mu.Lock()
	defer r.mu.Unlock()
	f, known := r.finders[id]
	if !known {
		if len(r.finders) >= maxFinders { // patterns have names of indexes, which a request may invent
			clear(r.finders)
		}
		f = r.o.Reader.Finder(*p)
		r.finders[id] = f
	}
	return f
}
