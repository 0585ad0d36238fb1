package pipeline

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// lanes applies changes to Bigtable. All changes of an item go through the same lane, and a lane has one
// call in flight.
//
// Rule 5: so changes of one item reach the sink in version order or not at all.
type lanes struct {
	t       *table
	sink    string
	turns   *turns // nil while no removal takes rows along
	all     []*lane
	calls   []*call       // of the lanes
	applied atomic.Uint64 // writes, by this pass
}

type lane struct {
	mu      sync.Mutex
	waiting []job
	arrived chan struct{} // capacity 1
	room    chan struct{} // capacity 1: a full lane has taken its jobs
}

type job struct {
	c     change.Change
	e     *pending
	taken bool // by the group that is being applied
	turn  *turn
}

// laneRoom bounds the jobs that wait in a lane. Their bytes are bounded by the memory budget; this keeps one
// hot item from taking all of it.
const laneRoom = 1024

func newLanes(t *table, sink string, n int) *lanes {
	l := &lanes{t: t, sink: sink, turns: newTurns(t.Program)}
	for range n {
		l.all = append(l.all, &lane{arrived: make(chan struct{}, 1), room: make(chan struct{}, 1)})
		l.calls = append(l.calls, &call{of: l})
	}
	return l
}

func (l *lanes) wants(*change.Change) bool { return true }

func (l *lanes) take(ctx context.Context, c *change.Change, e *pending) error {
	turn, by := l.turns.take(c)
	ln := l.all[by%uint64(len(l.all))]
	for {
		ln.mu.Lock()
		full := len(ln.waiting) >= laneRoom
		if !full {
			ln.waiting = append(ln.waiting, job{c: *c, e: e, turn: turn})
		}
		ln.mu.Unlock()
		if !full {
			signal(ln.arrived)
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ln.room:
		}
	}
}

func (l *lanes) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, ln := range l.all {
		w := &worker{lanes: l, lane: ln, call: l.calls[i].do, dec: new(change.Decoder)}
		g.Go(func() error { return w.run(ctx) })
	}
	g.Go(func() error { return l.park(ctx) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// worker empties one lane.
type worker struct {
	*lanes
	lane  *lane
	call  func(context.Context, func(context.Context) error) error
	dec   *change.Decoder
	write transform.Write
	batch []job

	hashes []uint64 // of the batch
	mine   []*job   // of one item
	group  []*change.Change
}

func (w *worker) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.lane.arrived:
		}
		w.lane.mu.Lock()
		w.batch, w.lane.waiting = w.lane.waiting, w.batch[:0]
		w.lane.mu.Unlock()
		signal(w.lane.room)
		if err := w.apply(ctx); err != nil {
			return err
		}
		clear(w.batch) // the frames behind the jobs may go
	}
}

// apply works the batch off, item by item. What waited of one item is coalesced into its last version.
func (w *worker) apply(ctx context.Context) error {
	if w.turns != nil {
		return w.inTurn(ctx)
	}
	w.hashes = w.hashes[:0]
	for i := range w.batch {
		w.hashes = append(w.hashes, w.batch[i].c.KeyHash)
	}
	for i := range w.batch {
		if w.batch[i].taken {
			continue
		}
		w.mine = w.mine[:0]
		for k, hash := range w.hashes[i:] {
			if j := &w.batch[i+k]; hash == w.hashes[i] && !j.taken {
				j.taken = true
				w.mine = append(w.mine, j)
			}
		}
		if err := w.item(ctx, w.mine); err != nil {
			return err
		}
	}
	return nil
}

// item applies changes with one key hash, in order. Two items may share a hash, and a key may be written in
// two ways: only changes whose keys are the same bytes are coalesced.
func (w *worker) item(ctx context.Context, jobs []*job) error {
	for len(jobs) > 0 {
		n := sameItem(jobs)
		if err := w.changes(ctx, jobs[:n]); err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

// sameItem returns how many of the first jobs are changes of one item.
func sameItem(jobs []*job) int {
	n := 1
	for n < len(jobs) && bytes.Equal(jobs[n].c.Keys, jobs[0].c.Keys) {
		n++
	}
	return n
}

// changes applies changes of one item as one write. A refused one is taken apart: the earlier changes are
// applied, only the refused ones become dead letters (Rule 8).
func (w *worker) changes(ctx context.Context, jobs []*job) error {
	if len(jobs) > 1 && !w.t.Program.CanCoalesce() {
		return w.apart(ctx, jobs) // a history wants every version
	}
	err := w.once(ctx, jobs)
	switch why := refusal(err); {
	case why != nil && len(jobs) > 1 && why.code != codeParked:
		return w.apart(ctx, jobs)
	case why != nil:
		err = w.refuse(ctx, jobs, why)
	case err == nil:
		w.t.letters.taken()
		w.applied.Add(1)
		w.t.m.applied.Add(float64(len(jobs)))
		w.t.heat.wrote(time.Now(), &w.write, jobs)
	}
	if err != nil {
		return err
	}
	// Rule 1: only now, that all of it is durable, may the mark pass.
	for _, j := range jobs {
		j.e.done(1)
	}
	return nil
}

func (w *worker) refuse(ctx context.Context, jobs []*job, why *reason) error {
	for _, j := range jobs {
		if err := w.t.letters.refuse(ctx, w.sink, &j.c, j.e.at.Seq, why); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) apart(ctx context.Context, jobs []*job) error {
	for i := range jobs {
		if err := w.changes(ctx, jobs[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) once(ctx context.Context, jobs []*job) (err error) {
	w.dec.Reset()
	if len(jobs) == 1 {
		err = w.t.Program.Change(w.dec, &jobs[0].c, &w.write)
	} else {
		w.group = w.group[:0]
		for i := range jobs {
			w.group = append(w.group, &jobs[i].c)
		}
		err = w.t.Program.Coalesce(w.dec, w.group, &w.write)
	}
	if err != nil || len(w.write.Rows) == 0 {
		return err
	}
	// An item with a dead letter holds cells that no later difference knows of. Only a write that replaces all
	// of it may follow; anything else waits with the letter for a resync of the item.
	if !w.write.Heals && w.t.letters.isDirty(jobs[0].c.KeyHash) {
		return &transform.Refusal{Code: "dirty", What: "an earlier change of the item is a dead letter, and its rows are not functions of its key alone"}
	}
	err = w.call(ctx, func(ctx context.Context) error { return w.t.p.sink.Apply(ctx, w.t.Target, &w.write) })
	if err != nil {
		return &sinkError{err}
	}
	return nil
}
