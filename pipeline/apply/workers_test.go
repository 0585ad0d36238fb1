package apply

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// noBound is the bound of a table where workers alone limit the calls.
func noBound() int { return 1 << 20 }

// taken acquires workers of a table until there are no more, and returns what releases each.
func taken(t *testing.T, table *tableWorkers) (all []func()) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		release, err := table.acquire(ended, changes, 1) // one that is free is taken all the same
		if err != nil {
			return all
		}
		all = append(all, release)
	}
}

func TestWorkersAreDividedBetweenTheTablesThatAreCarried(t *testing.T) {
	w := &workers{half: 100}
	a, leaveA := w.join(noBound)
	if all := taken(t, a); len(all) != 200 {
		t.Errorf("one table has %d workers, want all 200", len(all))
	} else {
		for _, release := range all {
			release()
		}
	}
	b, leaveB := w.join(noBound)
	first, second := taken(t, a), taken(t, b)
	if len(first) != 150 || len(second) != 50 {
		t.Errorf("two tables have %d and %d workers, want 150 and the part of 50", len(first), len(second))
	}
	got := make(chan error)
	go func() {
		_, err := b.acquire(t.Context(), changes, 1)
		got <- err
	}()
	w.awaitWaiting(t, 1)
	for _, release := range first {
		release()
	}
	leaveA()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if all := taken(t, b); len(second)+1+len(all) != 200 {
		t.Errorf("the table that is left has %d workers, want all 200", len(second)+1+len(all))
	}
	leaveB()
}

// awaitWaiting waits until n tables wait for a worker.
func (w *workers) awaitWaiting(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		w.mu.Lock()
		waiting := len(w.waiting[changes]) + len(w.waiting[resyncs])
		w.mu.Unlock()
		if waiting == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d tables wait for a worker, want %d", waiting, n)
		}
	}
}

// TestTableThatWaitsGetsAWorker that another table releases, or whose part falls to it when another
// table ends.
func TestTableThatWaitsGetsAWorker(t *testing.T) {
	w := &workers{half: 100}
	a, leaveA := w.join(noBound)
	b, leaveB := w.join(noBound)
	all := taken(t, a)
	got := make(chan func())
	wait := func() {
		go func() {
			release, err := a.acquire(t.Context(), changes, 1)
			if err != nil {
				t.Error(err)
			}
			got <- release
		}()
		w.awaitWaiting(t, 1)
	}
	wait()
	all[0]()
	all[0] = <-got
	wait()
	leaveB() // while b's workers, of which there are none, have ended
	all = append(all, <-got)
	for _, release := range all {
		release()
	}
	if leaveA(); w.common != 0 || a.own != 0 || b.own != 0 || w.tables != 0 || len(w.waiting[changes]) != 0 {
		t.Errorf("not given back: %+v %+v %+v", w, a, b)
	}
}

// TestTableThatEndsWhileItWaitsTakesNoWorker, also where it is served at the same moment.
func TestTableThatEndsWhileItWaitsTakesNoWorker(t *testing.T) {
	w := &workers{half: leastWorkers}
	a, leave := w.join(noBound)
	defer leave()
	for range 100 {
		all := taken(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if release, err := a.acquire(ctx, changes, 1); err == nil {
				release()
			}
		}()
		w.awaitWaiting(t, 1)
		w.mu.Lock()
		cancel()
		runtime.Gosched() // most often it sees now that it has ended, and is served while it waits for the mutex
		w.common--        // the last one's release
		w.serve()
		w.mu.Unlock()
		for _, release := range all[:len(all)-1] {
			release()
		}
		<-ended
		if w.common != 0 || a.own != 0 || len(w.waiting[changes]) != 0 {
			t.Fatalf("not given back: %+v %+v", w, a)
		}
		ctx, cancel = context.WithCancel(t.Context())
		all = taken(t, a)
		cancel()
		if _, err := a.acquire(ctx, changes, 1); err == nil || len(w.waiting[changes]) != 0 {
			t.Fatalf("it waits although it has ended: %v, %d", err, len(w.waiting[changes]))
		}
		for _, release := range all {
			release()
		}
	}
}

func TestManyTablesHaveAFewWorkersEach(t *testing.T) {
	w := &workers{half: 16}
	var all []*tableWorkers
	for range 10 {
		table, leave := w.join(noBound)
		defer leave()
		all = append(all, table)
	}
	for i, table := range all {
		want := leastWorkers
		if i == 0 {
			want += 16
		}
		if n := len(taken(t, table)); n != want {
			t.Errorf("table %d has %d workers, want %d", i, n, want)
		}
	}
}

// TestTableHasAsManyBatchesInWorkAsBigtableTakes, and some that are being prepared; one that waits is
// served once the bound has grown.
func TestTableHasAsManyBatchesInWorkAsBigtableTakes(t *testing.T) {
	w := &workers{half: 1000}
	var bound atomic.Int64
	bound.Store(16)
	table, leave := w.join(func() int { return int(bound.Load()) })
	defer leave()
	all := taken(t, table)
	if want := 16 + 4 + leastWorkers; len(all) != want {
		t.Fatalf("%d batches in work, want %d", len(all), want)
	}
	bound.Store(64)
	if more := taken(t, table); len(all)+len(more) != 64+16+leastWorkers {
		t.Errorf("%d batches in work at a bound of 64", len(all)+len(more))
	}
}

// TestLargeItemsCountInParts: of 100 KB items fewer are in work at once, a batch that is larger than
// the share of its table is alone in it, and all parts are given back.
func TestLargeItemsCountInParts(t *testing.T) {
	w := &workers{half: 100}
	a, leaveA := w.join(noBound)
	_, leaveB := w.join(noBound)
	large := partsOf(100_000)
	if large < 15 || large > 25 || partsOf(1000) != 1 {
		t.Fatalf("100 KB are %d parts, 1 KB %d", large, partsOf(1000))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var all []func()
	for {
		release, err := a.acquire(ended, changes, large)
		if err != nil {
			break
		}
		all = append(all, release)
	}
	if want := 50/large + 100/large; len(all) != want {
		t.Errorf("%d large batches in work, want %d", len(all), want)
	}
	for _, release := range all {
		release()
	}
	release, err := a.acquire(ended, changes, 1000)
	if err != nil {
		t.Fatal("a batch larger than all parts is never in work")
	}
	release()
	if w.common != 0 || a.own != 0 || a.batches != 0 {
		t.Errorf("not given back: %+v %+v", w, a)
	}
	leaveA()
	leaveB()
}
