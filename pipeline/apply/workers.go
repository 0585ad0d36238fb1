package apply

import (
	"context"
	"slices"
	"sync"
)

// workers bounds the batches in work over all tables together, because each holds an item's image,
// cells and request, and the stack of a call. A batch counts in parts of callBytes. A table has no
// more batches in work than Bigtable takes calls of it at once, and some that are being prepared.
//
// Rule 9: half of them is for any table, the other half is divided between the tables that this
// process carries, so that a table with calls that hang leaves workers to the others. Tables for
// which it stands by do not count.
type workers struct {
	half int // parts

	mu      sync.Mutex // covers what follows
	common  int        // parts in use of the half for any table
	tables  int        // that are carried
	waiting []*waiting // in the order in which they came
}

// tableWorkers are the workers of a table that is carried.
type tableWorkers struct {
	all   *workers
	bound func() int // calls that Bigtable may have in flight

	// all.mu covers what follows.
	batches int // in work
	own     int // parts in use of the table's share
}

// waiting is a table that waits for one more worker.
type waiting struct {
	table *tableWorkers
	parts int
	got   chan func() // capacity 1: gets the function that releases it
}

// leastWorkers is how many parts a table has to itself, however many tables there are.
const leastWorkers = 8

// callBytes is the memory of a call with a small item: the stack of its goroutine, its request and
// the answer. imageCopies is how often a larger item is held besides the log's entry: as cells, as
// the request, and as what is sent of it.
const (
	callBytes   = 16 << 10
	imageCopies = 3
)

// CallsIn returns how many calls with small items fit in so many bytes, and a few where these are
// few.
func CallsIn(bytes int64) int { return max(int(bytes/callBytes), 256) }

// partsOf returns the parts of a batch with an item of so many bytes as its largest.
func partsOf(image int) int { return 1 + image*imageCopies/callBytes }

// join adds a table. bound returns how many calls Bigtable may have in flight. leave, called when
// all its workers have ended, takes it away.
func (w *workers) join(bound func() int) (t *tableWorkers, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tables++
	return &tableWorkers{all: w, bound: bound}, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tables--
		w.serve()
	}
}

// acquire waits until one more worker may run, for a batch of so many parts, and returns the
// function to call when it has ended.
func (t *tableWorkers) acquire(ctx context.Context, parts int) (release func(), err error) {
	w := t.all
	w.mu.Lock()
	if release = w.take(t, parts); release != nil {
		w.mu.Unlock()
		return release, nil
	}
	x := &waiting{table: t, parts: parts, got: make(chan func(), 1)}
	w.waiting = append(w.waiting, x)
	w.mu.Unlock()
	select {
	case release = <-x.got:
		return release, nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	i := slices.Index(w.waiting, x)
	if i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	w.mu.Unlock()
	if i < 0 { // it was served meanwhile
		(<-x.got)()
	}
	return nil, context.Cause(ctx)
}

// take takes a worker for a table; nil while there is none. A batch that is larger than the table's
// share is alone in it. The caller holds w.mu.
func (w *workers) take(t *tableWorkers, parts int) (release func()) {
	if t.batches >= beside(t.bound()) {
		return nil
	}
	used := &w.common
	if t.own == 0 || t.own+parts <= max(w.half/max(w.tables, 1), leastWorkers) {
		used = &t.own
	} else if w.common+parts > w.half {
		return nil
	}
	*used += parts
	t.batches++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		*used -= parts
		t.batches--
		w.serve()
	}
}

// beside returns how many batches are in work while so many calls may be in flight: some are
// prepared meanwhile, else the bound would never be reached, and so never grow.
func beside(bound int) int { return bound + bound/4 + leastWorkers }

// serve gives workers to those that wait. The caller holds w.mu.
func (w *workers) serve() {
	w.waiting = slices.DeleteFunc(w.waiting, func(x *waiting) bool {
		release := w.take(x.table, x.parts)
		if release != nil {
			x.got <- release
		}
		return release != nil
	})
}
