package apply

import (
	"context"
	"slices"
	"sync"
)

// workers bounds the batches in work over all tables together, because each holds an item's image,
// cells and request.
//
// Rule 9: half of them is for any table, the other half is divided between the tables that this
// process carries, so that a table with calls that hang leaves workers to the others. Tables for
// which it stands by do not count.
type workers struct {
	half int

	mu      sync.Mutex // covers what follows
	common  int        // in use of the half for any table
	tables  int        // that are carried
	waiting []*waiting // in the order in which they came
}

// tableWorkers are the workers of a table that is carried.
type tableWorkers struct {
	all *workers
	own int // in use of the table's part; all.mu covers it
}

// waiting is a table that waits for one more worker.
type waiting struct {
	table *tableWorkers
	got   chan func() // capacity 1: gets the function that releases it
}

// leastWorkers is how many workers a table has to itself, however many tables there are.
const leastWorkers = 8

// join adds a table. leave, called when all its workers have ended, takes it away.
func (w *workers) join() (t *tableWorkers, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tables++
	return &tableWorkers{all: w}, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tables--
		w.serve()
	}
}

// acquire waits until one more worker may run, and returns the function to call when it has ended.
func (t *tableWorkers) acquire(ctx context.Context) (release func(), err error) {
	w := t.all
	w.mu.Lock()
	if release = w.take(t); release != nil {
		w.mu.Unlock()
		return release, nil
	}
	x := &waiting{table: t, got: make(chan func(), 1)}
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

// take takes a worker for a table; nil while there is none. The caller holds w.mu.
func (w *workers) take(t *tableWorkers) (release func()) {
	used := &w.common
	if t.own < max(w.half/max(w.tables, 1), leastWorkers) {
		used = &t.own
	} else if w.common >= w.half {
		return nil
	}
	*used++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		*used--
		w.serve()
	}
}

// serve gives workers to those that wait. The caller holds w.mu.
func (w *workers) serve() {
	w.waiting = slices.DeleteFunc(w.waiting, func(x *waiting) bool {
		release := w.take(x.table)
		if release != nil {
			x.got <- release
		}
		return release != nil
	})
}
