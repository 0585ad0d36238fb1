package apply

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// workers bounds the batches in work over all tables together, because each holds an item's image,
// cells and request, and the stack of a call. A batch counts as one or more parts, of callBytes
// each. A table has as many batches in work as Bigtable may have calls of it in flight, and some
// that are being prepared.
//
// Rule 9: half of the parts is for any table, the other half is divided between the tables that this
// process owns. So a table with calls that hang leaves workers to the others. Tables for which the
// process stands by do not count.
//
// Changes come first: a batch of a resync begins only while no batch of changes of its table waits,
// and takes of the half for any table only while none of any table does. A tenth of the batches
// that a table has in work may always be resyncs, so that a copy ends even beside a stream that
// always has something to write. Where memory leaves a table fewer than ten at a time, every tenth
// batch that begins may be one. A resync of a large item that finds no room, because small changes
// take each part that is given back, begins once more changes than its parts have begun. It then
// has more than its table's share, one resync at a time.
type workers struct {
	half int // of all parts

	mu      sync.Mutex        // covers what follows
	common  int               // parts in use of the half for any table
	tables  int               // that this process owns
	waiting [kinds][]*waiting // in the order in which they came
}

// tableWorkers are the workers of a table that this process owns.
type tableWorkers struct {
	all   *workers
	bound func() int // how many calls of the table Bigtable may have in flight

	// all.mu covers what follows.
	batches int        // in work
	resyncs int        // of these, those of resyncs
	since   int        // batches of changes that have begun since the last one of a resync
	own     int        // parts in use of the table's share
	behind  int        // batches of changes that wait
	wants   [kinds]int // parts of the batch of a kind that waits for a worker; 0: none waits
}

// waiting is a table's request for one more worker.
type waiting struct {
	table *tableWorkers
	parts int
	got   chan func() // capacity 1: filled with the function that releases the worker
}

// leastWorkers is the least share of a table in parts, however many tables there are.
const leastWorkers = 8

// firstResync is how many batches of changes begin before one of a resync may, where no resync is in
// work: then it is a tenth.
const firstResync = 9

// callBytes is the memory of a call with a small item: the stack of its goroutine, its request and
// the answer. imageCopies is how often a larger item is held besides the log's entry: as cells, as
// the request, and as what is sent of it.
const (
	callBytes   = 16 << 10
	imageCopies = 3
)

// CallsIn returns how many calls with small items fit in so many bytes, at least 256.
func CallsIn(bytes int64) int { return max(int(bytes/callBytes), 256) }

// partsOf returns the parts of a batch with an item of so many bytes as its largest.
func partsOf(image int) int { return 1 + image*imageCopies/callBytes }

// join adds a table. bound returns how many calls of it Bigtable may have in flight. leave removes
// the table; call it when all its workers have ended.
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

// acquire waits until one more worker may run, for a batch of a kind and so many parts, and returns
// the function to call when it has ended.
func (t *tableWorkers) acquire(ctx context.Context, k kind, parts int) (release func(), err error) {
	w := t.all
	w.mu.Lock()
	if release = w.take(t, k, parts); release != nil {
		w.mu.Unlock()
		return release, nil
	}
	x := &waiting{table: t, parts: parts, got: make(chan func(), 1)}
	w.waiting[k] = append(w.waiting[k], x)
	t.wants[k] = parts
	if k == changes {
		t.behind++
	}
	w.mu.Unlock()
	select {
	case release = <-x.got:
		return release, nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	i := slices.Index(w.waiting[k], x)
	if i >= 0 {
		w.waiting[k] = slices.Delete(w.waiting[k], i, i+1)
		t.wants[k] = 0
		if k == changes {
			t.behind--
			w.serve() // a resync may have waited for it
		}
	}
	w.mu.Unlock()
	if i < 0 { // it was served meanwhile
		(<-x.got)()
	}
	return nil, context.Cause(ctx)
}

// take takes a worker for a batch of a table, or returns nil if none is free. A batch that is larger
// than the table's share may use it alone. The caller holds w.mu.
func (w *workers) take(t *tableWorkers, k kind, parts int) (release func()) {
	most := batchesFor(t.bound())
	yields := k == resyncs && !t.mayResync()
	if t.batches >= most || yields && t.behind > 0 {
		return nil
	}
	used := w.roomFor(t, parts)
	if used == nil && k == resyncs && t.resyncs == 0 && t.since >= firstResync+parts {
		used = &t.own
	}
	if used == nil || used == &w.common && yields && len(w.waiting[changes]) > 0 {
		return nil
	}
	of := 0
	if t.since++; k == resyncs {
		of, t.since = 1, 0
	}
	*used += parts
	t.batches++
	t.resyncs += of
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		*used -= parts
		t.batches--
		t.resyncs -= of
		w.serve()
	}
}

// mayResync reports whether one more batch of a resync is within the table's tenth. The tenth is of
// what is in work, which memory may bound far below what Bigtable takes. The caller holds all.mu.
func (t *tableWorkers) mayResync() bool {
	return t.resyncs < t.batches/10 || t.resyncs == 0 && t.since >= firstResync
}

// roomFor returns what so many parts count to: the table's share or the half for any table; nil if
// both are in use. The caller holds w.mu.
func (w *workers) roomFor(t *tableWorkers, parts int) (used *int) {
	switch {
	case t.own == 0 || t.own+parts <= max(w.half/max(w.tables, 1), leastWorkers):
		return &t.own
	case w.common+parts <= w.half:
		return &w.common
	}
	return nil
}

// waits reports whether a batch of the table waits for a worker, and whether that is because the
// parts are in use, which memory bounds, or because Bigtable may have no more calls in flight.
func (t *tableWorkers) waits() (forCall, forMemory bool) {
	w := t.all
	w.mu.Lock()
	defer w.mu.Unlock()
	wants := cmp.Or(t.wants[changes], t.wants[resyncs])
	switch {
	case wants == 0:
	case t.batches >= batchesFor(t.bound()):
		return true, false
	default: // not if the bound has grown since: the next worker that ends lets the batch begin
		return false, w.roomFor(t, wants) == nil
	}
	return false, false
}

// batchesFor returns how many batches may be in work while so many calls may be in flight. Some
// batches are being prepared: without them the bound would not be reached, and so not grow.
func batchesFor(bound int) int { return bound + bound/4 + leastWorkers }

// MostInFlight returns the highest bound that one table can use in full with so many calls in work:
// the inverse of batchesFor.
func MostInFlight(calls int) int { return max(calls-leastWorkers, 0) * 4 / 5 }

// serve gives workers to the tables that wait: first to resyncs that are within their tenth, then to
// changes, then to the other resyncs. The caller holds w.mu.
func (w *workers) serve() {
	w.serveKind(resyncs)
	w.serveKind(changes)
	w.serveKind(resyncs)
}

func (w *workers) serveKind(k kind) {
	w.waiting[k] = slices.DeleteFunc(w.waiting[k], func(x *waiting) bool {
		release := w.take(x.table, k, x.parts)
		if release == nil {
			return false
		}
		if k == changes {
			x.table.behind--
		}
		x.got <- release
		x.table.wants[k] = 0
		return true
	})
}
