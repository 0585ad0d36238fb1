package apply

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
)

// lanes is the target Bigtable. All changes of an item go through the same lane; a lane has one worker at a time, and a
// worker has one call in flight.
//
// Rule 5: so changes of one item reach the sink in version order or not at all.
//
// A worker is started for each batch of a lane, and an idle lane holds next to nothing: of many tables most are idle.
// The number of workers is bounded over all tables together, because each holds an item's image, cells and request.
type lanes struct {
	*lanePass
	all      []*lane
	ready    chan *lane    // lanes with jobs and no worker; each is in it once at most
	reserved chan struct{} // a token per worker that no other table can take
	workers  sync.Pool     // of *worker, for this table's program
}

type lane struct {
	call *call

	mu      sync.Mutex    // covers what follows
	waiting []job         //
	busy    bool          // in ready, or with a worker
	room    chan struct{} // capacity 1: a full lane has given its jobs to a worker
}

// laneRoom bounds the jobs that wait in a lane. The memory budget bounds their bytes; this keeps one hot item from
// taking all of it.
const laneRoom = 1024

func newLanes(shared *Shared, o *Options, letters *DeadLetters) *lanes {
	l := &lanes{
		lanePass: &lanePass{
			o: o, shared: shared, letters: letters, turns: newTurns(o.Table.Program),
			quarantine: newQuarantine(shared.now, o.Retention),
		},
		ready: make(chan *lane, shared.lanes), reserved: make(chan struct{}, shared.reserved),
	}
	l.workers.New = func() any { return newWorker(l.lanePass) }
	for range shared.lanes {
		l.all = append(l.all, &lane{call: l.quarantine.newCall(), room: make(chan struct{}, 1)})
	}
	return l
}

func (l *lanes) wants(*change.Change) bool { return true }

// submit puts a change into the lane of its item, and blocks while that is full.
func (l *lanes) submit(ctx context.Context, c *change.Change, e *openEntry) error {
	turn, hash := l.turns.enqueue(c)
	ln := l.all[hash%uint64(len(l.all))]
	for {
		ln.mu.Lock()
		full, wake := len(ln.waiting) >= laneRoom, !ln.busy
		if !full {
			ln.waiting = append(ln.waiting, job{c: *c, entry: e, turn: turn})
			ln.busy = true
		}
		ln.mu.Unlock()
		if !full {
			if wake {
				l.ready <- ln
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ln.room:
		}
	}
}

// run waits until the row in Bigtable agrees with the log, then works until ctx ends.
func (l *lanes) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.o.Agreed:
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.dispatch(ctx, g) })
	g.Go(func() error { return l.quarantine.watch(ctx) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// dispatch starts a worker for each lane that has jobs.
func (l *lanes) dispatch(ctx context.Context, g *errgroup.Group) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case ln := <-l.ready:
			release, err := l.acquireWorker(ctx)
			if err != nil {
				return err
			}
			g.Go(func() error {
				defer release()
				return l.applyBatch(ctx, ln)
			})
		}
	}
}

// acquireWorker waits until one more worker may run, and returns the function to call when it has ended.
//
// Rule 9: half of all workers is for any table, the other half is divided between the tables, so that a table whose
// calls hang leaves workers to the others. Where workers wait for each other's changes they are not bounded: the one
// that all wait for might not be among them.
func (l *lanes) acquireWorker(ctx context.Context) (release func(), err error) {
	if l.turns != nil {
		return func() {}, nil
	}
	select {
	case l.reserved <- struct{}{}:
		return func() { <-l.reserved }, nil
	case l.shared.common <- struct{}{}:
		return func() { <-l.shared.common }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// applyBatch applies the jobs that wait in a lane. Jobs that arrive meanwhile form a batch of their own, after those of
// other lanes.
func (l *lanes) applyBatch(ctx context.Context, ln *lane) error {
	w := l.workers.Get().(*worker)
	w.call = ln.call
	ln.mu.Lock()
	w.batch, ln.waiting = ln.waiting, w.batch[:0]
	ln.mu.Unlock()
	signal(ln.room)
	if err := w.apply(ctx); err != nil {
		return err
	}
	clear(w.batch) // lets the frames behind the jobs be collected
	l.workers.Put(w)
	ln.mu.Lock()
	ln.busy = len(ln.waiting) > 0
	wake := ln.busy
	if !wake {
		ln.waiting = nil
	}
	ln.mu.Unlock()
	if wake {
		l.ready <- ln
	}
	return nil
}
