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
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/transform"
)

// lanes applies changes to Bigtable. All changes of an item go through the same lane, and a lane has one
// worker at a time, with one call in flight.
//
// Rule 5: so changes of one item reach the sink in version order or not at all.
//
// A worker is made for each batch of a lane, and an idle lane holds next to nothing: of many tables most are idle.
// How many work at once is bounded for all tables together, because each holds an item's image, cells and request.
type lanes struct {
	t       *table
	sink    string
	turns   *turns // nil while no removal takes rows along
	all     []*lane
	calls   []*call       // of the lanes
	woken   chan *lane    // lanes with jobs and no worker; each is in it once at most
	own     chan struct{} // a token per worker of the part that no other table can take
	workers sync.Pool     // of *worker, for this table's program
	applied atomic.Uint64 // writes, by this pass
}

type lane struct {
	call *call

	mu      sync.Mutex
	waiting []job
	busy    bool          // woken, or with a worker
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
	l := &lanes{t: t, sink: sink, turns: newTurns(t.Program), woken: make(chan *lane, n), own: make(chan struct{}, t.p.part)}
	l.workers.New = func() any { return &worker{lanes: l, dec: new(change.Decoder)} }
	for range n {
		c := &call{of: l}
		l.calls = append(l.calls, c)
		l.all = append(l.all, &lane{call: c, room: make(chan struct{}, 1)})
	}
	return l
}

func (l *lanes) wants(*change.Change) bool { return true }

func (l *lanes) take(ctx context.Context, c *change.Change, e *pending) error {
	turn, by := l.turns.take(c)
	ln := l.all[by%uint64(len(l.all))]
	for {
		ln.mu.Lock()
		full, wake := len(ln.waiting) >= laneRoom, !ln.busy
		if !full {
			ln.waiting = append(ln.waiting, job{c: *c, e: e, turn: turn})
			ln.busy = true
		}
		ln.mu.Unlock()
		if !full {
			if wake {
				l.woken <- ln
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

func (l *lanes) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.t.confirmed:
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.dispatch(ctx, g) })
	g.Go(func() error { return l.park(ctx) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// dispatch gives each lane that was woken a worker for its batch.
func (l *lanes) dispatch(ctx context.Context, g *errgroup.Group) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case ln := <-l.woken:
			done, err := l.begin(ctx)
			if err != nil {
				return err
			}
			g.Go(func() error {
				defer done()
				return l.work(ctx, ln)
			})
		}
	}
}

// begin waits until one more may work, and returns what says that it is done.
//
// Rule 9: half of all workers is for any table, the other half is shared out, so that a table whose calls hang leaves
// workers to the others. Where workers wait for each other's changes they are not bounded: the one that all wait for
// might not be among them.
func (l *lanes) begin(ctx context.Context) (done func(), err error) {
	if l.turns != nil {
		return func() {}, nil
	}
	select {
	case l.own <- struct{}{}:
		return func() { <-l.own }, nil
	case l.t.p.common <- struct{}{}:
		return func() { <-l.t.p.common }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// work applies what waits in a lane. What comes meanwhile is a batch of its own, after those of other lanes.
func (l *lanes) work(ctx context.Context, ln *lane) error {
	w := l.workers.Get().(*worker)
	w.call = ln.call.do
	ln.mu.Lock()
	w.batch, ln.waiting = ln.waiting, w.batch[:0]
	ln.mu.Unlock()
	signal(ln.room)
	if err := w.apply(ctx); err != nil {
		return err
	}
	clear(w.batch) // the frames behind the jobs may go
	l.workers.Put(w)
	ln.mu.Lock()
	ln.busy = len(ln.waiting) > 0
	wake := ln.busy
	if !wake {
		ln.waiting = nil
	}
	ln.mu.Unlock()
	if wake {
		l.woken <- ln
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// worker applies the batch of one lane. It is used again for others of the table, with the memory that it has grown.
type worker struct {
	*lanes
	call  func(context.Context, func(context.Context) error) error
	dec   *change.Decoder
	write transform.Write
	batch []job

	hashes []uint64 // of the batch
	mine   []*job   // of one item
	group  []*change.Change
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
	switch out := outcome.OfChange(err); {
	case out.Action == outcome.DeadLetter && len(jobs) > 1 && out.Code != outcome.CodeParked:
		return w.apart(ctx, jobs)
	case out.Action == outcome.DeadLetter:
		err = w.refuse(ctx, jobs, out)
	case err == nil:
		if len(w.write.Rows) > 0 {
			w.t.letters.taken()
		}
		w.applied.Add(1)
		w.t.m.applied.Add(float64(len(jobs)))
		w.t.rows.Wrote(time.Now(), &w.write, &jobs[0].c, &jobs[len(jobs)-1].c)
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

func (w *worker) refuse(ctx context.Context, jobs []*job, why outcome.Outcome) error {
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
	if last := &jobs[len(jobs)-1].c; !w.write.Heals && w.t.letters.isDirty(last.KeyHash, last.Version) {
		return &transform.Refusal{Code: outcome.CodeDirty, What: "an earlier change of the item is a dead letter, and its rows are not functions of its key alone"}
	}
	err = w.call(ctx, func(ctx context.Context) error { return w.t.p.sink.Apply(ctx, w.t.Target, &w.write) })
	if err != nil {
		return &outcome.SinkError{Err: err}
	}
	return nil
}
