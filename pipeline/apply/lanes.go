package apply

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// lanes is the target Bigtable. All changes of an item go through the same lane; a lane has one
// worker at a time, and a worker has one call in flight.
//
// Rule 5: so changes of one item reach the sink in version order or not at all.
//
// A worker applies a batch of one lane, then of another, and ends when it gets none for a while. So
// an idle lane holds next to nothing: most tables are idle. The number of batches in work is bounded
// over all tables together, because each holds an item's image, cells and request.
type lanes struct {
	*lanePass
	all     []lane
	ready   [kinds]chan *lane // lanes with jobs of a kind and no worker; each is in a channel once at most
	idle    chan assigned     // to goroutines of work that have no batch
	workers sync.Pool         // of *worker, for this table's program
	ended   chan struct{}     // closed when the pass and all its workers have ended

	// For Sink.Place.
	busy       atomic.Int64                 // lanes in ready, or with a worker
	operations atomic.Int64                 // resyncs in lanes
	full       atomic.Bool                  // the reading of the log waits for a lane
	working    atomic.Pointer[tableWorkers] // nil before the first batch may be applied
}

// lane is small, because a table has thousands. A lane has one call in flight, and items are
// distributed by hash: so a bound on calls is reached only with about twice as many lanes.
type lane struct {
	call call

	mu      sync.Mutex    // covers what follows
	waiting []job         // changes; with turns, resyncs too
	op      *operation    // a resync that waits; with turns, always nil
	working bool          // with a worker
	queued  [kinds]bool   // in ready, or with the dispatcher
	along   bool          // the resync goes along with the next changes
	counted bool          // in lanes.busy
	room    chan struct{} // capacity 1: filled when a worker takes the jobs; nil before the lane was ever full
	resync  chan struct{} // capacity 1: holds a token while a resync is in the lane; nil before the first
}

// laneRoom bounds the jobs that wait in a lane. The memory budget bounds their bytes; this keeps
// one hot item from taking all of it.
const laneRoom = 1024

// LanesWithTurns is the most lanes of a table whose rules make changes wait for each other. Its
// workers have no other bound: see dispatch.
const LanesWithTurns = 256

func newLanes(shared *Shared, o *Options, letters *DeadLetters) *lanes {
	count, turns := shared.lanes, newTurns(o.Table.Program)
	if turns != nil {
		count = min(count, LanesWithTurns)
	}
	l := &lanes{
		lanePass: &lanePass{
			o: o, shared: shared, letters: letters, turns: turns,
			quarantine: newQuarantine(shared.now, o.Retention, o.Park),
		},
		idle: make(chan assigned), ended: make(chan struct{}), all: make([]lane, count),
	}
	for k := range l.ready {
		l.ready[k] = make(chan *lane, count)
	}
	l.workers.New = func() any { return newWorker(l.lanePass) }
	for i := range l.all {
		l.quarantine.watchCall(&l.all[i].call)
	}
	return l
}

// wants leaves out changes older than the life: the resync with which the life begins covers them,
// and readers would observe the rows going back.
func (l *lanes) wants(c *change.Change) bool { return l.o.lives[c.Feed.Stream].Applies(c.Version) }

// submit puts a change into the lane of its item, and blocks while that is full.
func (l *lanes) submit(ctx context.Context, c *change.Change, e *protocol.TrackedEntry) error {
	turn, hash := l.turns.prepare(c.KeyHash, nil, c)
	ln := &l.all[hash%uint64(len(l.all))]
	for {
		full := l.put(ln, job{c: *c, entry: e, turn: turn}, laneRoom)
		if full == nil {
			return nil
		}
		l.full.Store(true)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-full:
		}
		l.full.Store(false)
	}
}

// put adds a job to a lane. If room changes wait there already, put adds nothing, and returns a
// channel that is filled when a worker takes them. The turn is taken under the same mutex, so that
// turns and jobs have one order.
func (l *lanes) put(ln *lane, j job, room int) (full <-chan struct{}) {
	ln.mu.Lock()
	if len(ln.waiting) >= room {
		if ln.room == nil {
			ln.room = make(chan struct{}, 1)
		}
		defer ln.mu.Unlock()
		return ln.room
	}
	l.turns.enqueue(j.turn)
	if j.op != nil && l.turns == nil {
		ln.op = j.op
	} else {
		ln.waiting = append(ln.waiting, j)
	}
	wake := ln.toQueue()
	l.count(ln)
	ln.mu.Unlock()
	l.queue(ln, wake)
	return nil
}

// resyncToken returns the channel that holds a token while a resync is in the lane.
func (ln *lane) resyncToken() chan struct{} {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.resync == nil {
		ln.resync = make(chan struct{}, 1)
	}
	return ln.resync
}

// parts returns the parts of the batch in the lane, see workers. Only the largest item counts: a
// worker has one call in flight.
func (ln *lane) parts() int {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	largest := 0
	for i := range ln.waiting {
		largest = max(largest, ln.waiting[i].size())
	}
	if ln.op != nil {
		largest = max(largest, len(ln.op.item.Item))
	}
	return partsOf(largest)
}

// submitResync puts an operation into the lane of its item, where it begins behind the changes that
// wait there. It waits until no other operation is in the lane, so that many operations do not hold up the stream.
// The reading of the log never waits for submitResync.
func (l *lanes) submitResync(ctx context.Context, o *operation) error {
	turn, hash := l.turns.prepare(o.item.Hash, o.rows, o.changes...)
	ln := &l.all[hash%uint64(len(l.all))]
	token := ln.resyncToken()
	select {
	case token <- struct{}{}:
	case <-l.ended:
		return errPassEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.operations.Add(1)
	o.leave = func() { l.operations.Add(-1); <-token }
	l.put(ln, job{op: o, turn: turn}, math.MaxInt)
	return nil
}

// run waits until the row in Bigtable agrees with the log, then works until ctx ends or a setting
// makes writes unsafe.
//
// Rule 15: under such a setting nothing is written: a guard that Bigtable collects too early
// refuses nothing.
func (l *lanes) run(ctx context.Context) error {
	defer close(l.ended)
	select {
	case <-ctx.Done():
		return nil
	case <-l.o.Agreed:
	}
	if err := l.enter(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	workers, leave := l.shared.workers.join(func() int { return l.shared.bigtable.Bound(l.o.Target) })
	defer leave()
	l.working.Store(workers)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.o.Gate.Shut(ctx) })
	for k := range kinds {
		g.Go(func() error { return l.dispatch(ctx, g, k, workers) })
	}
	g.Go(func() error { return l.quarantine.watch(ctx) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// enter waits for the gate, and ends the halt that the gate has made. If nothing waits to be applied,
// no mark moves, and so nothing else would end that halt.
func (l *lanes) enter(ctx context.Context) error {
	if err := l.o.Gate.Enter(ctx); err != nil {
		return err
	}
	if !l.o.held {
		return nil
	}
	over := &checkpoint.Control{Clear: true, ClearSink: checkpoint.SinkBigtable, By: "owner", At: l.shared.now()}
	if err := l.o.Append(ctx, over); err != nil {
		return fmt.Errorf("append end of halt: %w", err)
	}
	l.o.held = false
	return nil
}

// assigned is a batch that a worker is to apply, its lane, and the function to call afterwards.
type assigned struct {
	*lane
	*worker
	release func()
}

// dispatch gives each lane that has jobs of a kind to a worker. If changes wait for each other,
// workers are not bounded: else the change that all workers wait for might itself get no worker.
func (l *lanes) dispatch(ctx context.Context, g *errgroup.Group, k kind, workers *tableWorkers) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case ln := <-l.ready[k]:
			release := func() {}
			if l.turns == nil {
				var err error
				if release, err = workers.acquire(ctx, k, ln.parts()); err != nil {
					return err
				}
			}
			next := assigned{ln, l.workers.Get().(*worker), release}
			var ok bool
			if next.batch, ok = l.take(ln, k, next.batch); !ok {
				l.workers.Put(next.worker)
				release()
				continue
			}
			select {
			case l.idle <- next:
			default:
				g.Go(func() error { return l.work(ctx, next) })
			}
		}
	}
}

// idleTime is how long a worker waits for another batch. Workers are used again because the stack
// of a new goroutine grows several times on the way into a call, a tenth of the CPU of a write.
const idleTime = time.Second

// work applies a batch, and then further ones, until none has come for idleTime.
func (l *lanes) work(ctx context.Context, next assigned) error {
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	for {
		err := l.applyBatch(ctx, next)
		next.release()
		if err != nil {
			return err
		}
		idle.Reset(idleTime)
		select {
		case next = <-l.idle:
		case <-idle.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// applyBatch applies a batch. Jobs that arrive in its lane meanwhile form a batch of their own,
// after the batches of other lanes.
func (l *lanes) applyBatch(ctx context.Context, b assigned) error {
	b.worker.call = &b.lane.call
	if err := b.apply(ctx); err != nil {
		return err
	}
	clear(b.batch) // lets the frames behind the jobs be collected
	l.workers.Put(b.worker)
	l.queue(b.lane, l.endBatch(b.lane))
	return nil
}
