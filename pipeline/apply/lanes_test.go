package apply

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/change"
)

// TestLaneWeighsItsLargestItem, of a change or of a resync, and asks for workers with that weight.
func TestLaneWeighsItsLargestItem(t *testing.T) {
	large, small := make([]byte, 100_000), make([]byte, 100)
	resync := func(item []byte) job { return job{op: &operation{item: &ResyncItem{Item: item}}} }
	for name, jobs := range map[string][]job{
		"change": {{c: change.Change{New: small}}, {c: change.Change{New: large}}, {c: change.Change{New: small}}},
		"resync": {resync(large), {c: change.Change{New: small}}},
	} {
		l := &lanes{lanePass: &lanePass{}}
		for k := range l.ready {
			l.ready[k] = make(chan *lane, 1)
		}
		ln := new(lane)
		for _, j := range jobs {
			l.put(ln, j, laneRoom)
		}
		w := &workers{half: leastWorkers}
		table, leave := w.join(noBound)
		defer leave()
		all := taken(t, table)
		ctx, cancel := context.WithCancel(t.Context())
		var g errgroup.Group
		g.Go(func() error { return l.dispatch(ctx, &g, changes, table) })
		w.awaitWaiting(t, 1)
		w.mu.Lock()
		if got, want := w.waiting[changes][0].parts, partsOf(len(large)); got != want {
			t.Errorf("%s: a batch with 100 KB counts as %d parts, want %d", name, got, want)
		}
		w.mu.Unlock()
		cancel()
		_ = g.Wait()
		for _, release := range all {
			release()
		}
	}
}

// TestPassHasAsManyBatchesInWorkAsBigtableTakes, of many more lanes that have jobs.
func TestPassHasAsManyBatchesInWorkAsBigtableTakes(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping, x.lanes = plain, 4096 })
	l := x.begin()
	l.settle()
	x.Bigtable.Faults.RefuseRow([]byte("p#"), codes.Unavailable, -1)
	for i := range 200 {
		l.Put("Orders", "p", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	l.Until("a batch waits for a worker", func() bool {
		l.shared.workers.mu.Lock()
		defer l.shared.workers.mu.Unlock()
		return len(l.shared.workers.waiting[changes]) == 1
	})
	l.shared.workers.mu.Lock()
	if table := l.shared.workers.waiting[changes][0].table; table.batches > 64 || table.own < table.batches {
		t.Errorf("%d batches in work, in %d parts of the table's share", table.batches, table.own)
	}
	l.shared.workers.mu.Unlock()
	x.Bigtable.Faults.Calm()
	l.settle()
	l.equal()
}

// TestBatchesOfAllSizesGetTheirTurn: of many tables, while bounds move and passes end that wait.
func TestBatchesOfAllSizesGetTheirTurn(t *testing.T) {
	w := &workers{half: 40}
	var tables sync.WaitGroup
	for seed := range uint64(12) {
		tables.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 1))
			table, leave := w.join(func() int { return rand.IntN(9) })
			defer leave()
			var mine sync.WaitGroup
			defer mine.Wait()
			for range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if rnd.IntN(4) == 0 {
					go cancel()
				}
				parts := 1
				if rnd.IntN(4) == 0 {
					parts = 1 + rnd.IntN(100)
				}
				release, err := table.acquire(ctx, kind(rnd.IntN(int(kinds))), parts)
				cancel()
				if err == nil {
					mine.Go(release)
				}
			}
		})
	}
	tables.Wait()
	if w.common != 0 || w.tables != 0 || len(w.waiting[changes])+len(w.waiting[resyncs]) != 0 {
		t.Errorf("not given back: %+v", w)
	}
}

// TestFullLaneGoesOnOnceAWorkerTakesItsJobs, also where that is before the reader of the log waits:
// the lane remembers it.
func TestFullLaneGoesOnOnceAWorkerTakesItsJobs(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping, x.lanes = plain, 1 })
	l := x.begin()
	l.settle()
	x.Bigtable.Faults.RefuseRow([]byte("p#stuck"), codes.Unavailable, -1)
	l.Put("Orders", "p", "stuck", `"v":{"N":"1"}`)
	l.Until("the lane is stuck", l.calling)
	for i := range laneRoom + 10 {
		l.Put("Orders", "p", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	ln := &l.sink.lanes.all[0]
	l.Until("the lane is full", func() bool {
		ln.mu.Lock()
		defer ln.mu.Unlock()
		if len(ln.waiting) > laneRoom {
			t.Fatalf("%d jobs in a lane", len(ln.waiting))
		}
		return ln.room != nil
	})
	if cap(ln.room) != 1 {
		t.Error("nobody is told of a batch that is taken just before")
	}
	x.Bigtable.Faults.Calm()
	l.settle()
	l.equal()
}
