package apply

import (
	"context"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// newQueues returns lanes that only queue.
func newQueues(turns *turns) *lanes {
	l := &lanes{lanePass: &lanePass{turns: turns}}
	for k := range l.ready {
		l.ready[k] = make(chan *lane, 1)
	}
	return l
}

// took returns what a worker takes of a kind from the lane, in order: c for a change, r for a resync.
func (l *lanes) took(ln *lane, k kind) (what string) {
	batch, _ := l.take(ln, k, nil)
	for i := range batch {
		if batch[i].op != nil {
			what += "r"
		} else {
			what += "c"
		}
	}
	return what
}

// queuedFor returns the kinds of jobs for which a lane was queued, and takes it out.
func (l *lanes) queuedFor() (all []kind) {
	for k := range kinds {
		select {
		case <-l.ready[k]:
			all = append(all, k)
		default:
		}
	}
	return all
}

// TestChangesOvertakeAResyncThatHasNotBegun, and the resync begins after them. Each keeps its place
// in its queue.
func TestChangesOvertakeAResyncThatHasNotBegun(t *testing.T) {
	l, ln := newQueues(nil), new(lane)
	resync := job{op: &operation{item: &ResyncItem{}}}
	l.put(ln, resync, laneRoom)
	l.put(ln, job{c: change.Change{}}, laneRoom)
	l.put(ln, job{c: change.Change{}}, laneRoom)
	if got := l.queuedFor(); len(got) != 2 {
		t.Fatalf("queued for %v, want both kinds", got)
	}
	if got := l.took(ln, changes); got != "cc" {
		t.Errorf("a worker takes %q, want the two changes alone", got)
	}
	l.queue(ln, l.endBatch(ln))
	if got := l.queuedFor(); len(got) != 0 {
		t.Errorf("queued for %v once more, while the dispatcher has the resync", got)
	}
	if got := l.took(ln, resyncs); got != "r" {
		t.Errorf("then %q, want the resync", got)
	}
	l.put(ln, job{c: change.Change{}}, laneRoom)
	if got := l.queuedFor(); len(got) != 0 {
		t.Errorf("queued for %v while a worker has the lane", got)
	}
	l.queue(ln, l.endBatch(ln))
	if got := l.queuedFor(); len(got) != 1 || got[0] != changes || l.took(ln, changes) != "c" {
		t.Errorf("queued for %v, want the change that came meanwhile", got)
	}
}

// TestResyncOfABusyLaneGoesAlong with the next changes once it was due: it would never begin in a
// lane that always has some. Without changes it has a turn of its own.
func TestResyncOfABusyLaneGoesAlong(t *testing.T) {
	for _, busy := range []bool{true, false} {
		l, ln := newQueues(nil), new(lane)
		l.put(ln, job{c: change.Change{}}, laneRoom)
		if got := l.took(ln, changes); got != "c" {
			t.Fatal(got)
		}
		l.put(ln, job{op: &operation{item: &ResyncItem{}}}, laneRoom)
		l.queuedFor()
		ln.queued[resyncs] = true // with the dispatcher
		if got := l.took(ln, resyncs); got != "" {
			t.Fatalf("a second worker takes %q", got)
		}
		want, kind := "r", resyncs
		if busy {
			l.put(ln, job{c: change.Change{}}, laneRoom)
			want, kind = "cr", changes
		}
		l.queue(ln, l.endBatch(ln))
		if all := l.queuedFor(); len(all) != 1 || all[0] != kind {
			t.Errorf("busy: %t: queued for %v, want %v", busy, all, kind)
		}
		if got := l.took(ln, kind); got != want {
			t.Errorf("busy: %t: a worker takes %q, want %q", busy, got, want)
		}
		if l.queue(ln, l.endBatch(ln)); len(l.queuedFor()) != 0 || ln.along || ln.op != nil || l.busy.Load() != 0 {
			t.Errorf("busy: %t: something is left in the lane", busy)
		}
	}
}

// TestLaneThatAnotherWorkerHasTakesNoWorker: the one that was acquired for it is given back.
func TestLaneThatAnotherWorkerHasTakesNoWorker(t *testing.T) {
	w := &workers{half: 100}
	table, leave := w.join(noBound)
	defer leave()
	l, ln := newQueues(nil), &lane{working: true}
	l.workers.New = func() any { return new(worker) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.dispatch(ctx, nil, changes, table) }()
	for range 3 { // when the third is in the queue, the first has been dealt with
		l.ready[changes] <- ln
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if table.batches != 0 || table.own != 0 || w.common != 0 {
		t.Errorf("not given back: %+v %+v", w, table)
	}
}

// TestResyncsKeepTheirPlaceWhereChangesWaitForEachOther: turns and jobs have one order there.
func TestResyncsKeepTheirPlaceWhereChangesWaitForEachOther(t *testing.T) {
	l, ln := newQueues(&turns{}), new(lane)
	l.put(ln, job{turn: new(turn)}, laneRoom)
	l.put(ln, job{op: &operation{item: &ResyncItem{}}, turn: new(turn)}, laneRoom)
	l.put(ln, job{turn: new(turn)}, laneRoom)
	if all := l.queuedFor(); len(all) != 1 || all[0] != changes {
		t.Errorf("queued for %v, want one place", all)
	}
	if got := l.took(ln, changes); got != "crc" {
		t.Errorf("a worker takes %q, want all in the order in which they came", got)
	}
}

// allOf takes workers of a kind until none is free.
func (t *tableWorkers) allOf(k kind) (all []func()) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		release, err := t.acquire(ended, k, 1)
		if err != nil {
			return all
		}
		all = append(all, release)
	}
}

// waitFor lets a batch wait for a worker.
func (t *tableWorkers) waitFor(test *testing.T, k kind, others int) (got chan func()) {
	got = make(chan func(), 1)
	go func() {
		if release, err := t.acquire(test.Context(), k, 1); err == nil {
			got <- release
		}
	}()
	t.all.awaitWaiting(test, others+1)
	return got
}

// TestChangesGetTheNextWorker although a resync came before them, and resyncs keep a tenth.
func TestChangesGetTheNextWorker(t *testing.T) {
	w := &workers{half: 1000}
	table, leave := w.join(func() int { return 80 }) // 108 batches
	defer leave()
	held := table.allOf(resyncs)
	if len(held) != 108 {
		t.Fatalf("%d resyncs in work without changes, want 108", len(held))
	}
	resync := table.waitFor(t, resyncs, 0)
	first := table.waitFor(t, changes, 1)
	second := table.waitFor(t, changes, 2)
	held[0]()
	held[1]()
	for _, got := range []chan func(){first, second} {
		defer (<-got)()
	}
	if len(resync) != 0 {
		t.Error("the resync got a worker before the changes")
	}
	third := table.waitFor(t, changes, 1)
	for i := 2; i < 100; i++ { // until eight resyncs are in work
		held[i]()
		if i == 2 {
			defer (<-third)()
		}
	}
	defer (<-resync)()
	rest := append(held[100:], table.allOf(changes)...)
	last := table.waitFor(t, changes, 0)
	resync = table.waitFor(t, resyncs, 1)
	rest[0]() // a resync's: nine are in work now, and a tenth are ten
	defer (<-resync)()
	if len(last) != 0 {
		t.Error("resyncs do not keep a tenth beside changes that wait")
	}
	for _, release := range rest[1:] {
		release()
	}
	(<-last)()
}

// TestResyncsTakeNoCommonWorkerBeforeChangesOfAnotherTable, but those of their own share.
func TestResyncsTakeNoCommonWorkerBeforeChangesOfAnotherTable(t *testing.T) {
	w := &workers{half: 100}
	a, leaveA := w.join(func() int { return 300 }) // 383 batches, of which 38 are for resyncs
	b, leaveB := w.join(noBound)
	copies := a.allOf(resyncs) // its share of 50, and the common half
	held := b.allOf(changes)   // its share
	if len(copies) != 150 || len(held) != 50 {
		t.Fatalf("%d and %d workers", len(copies), len(held))
	}
	resync := a.waitFor(t, resyncs, 0)
	waits := b.waitFor(t, changes, 1)
	copies[149]() // of the common half
	defer (<-waits)()
	if len(resync) != 0 {
		t.Error("a resync got a common worker before the change")
	}
	copies[0]() // of its share
	defer (<-resync)()
	for _, release := range append(copies[1:149], held...) {
		release()
	}
	leaveA()
	leaveB()
}

// TestResyncGoesOnWhenTheChangesThatWaitedGiveUp.
func TestResyncGoesOnWhenTheChangesThatWaitedGiveUp(t *testing.T) {
	w := &workers{half: 100}
	a, leaveA := w.join(func() int { return 300 }) // 383 batches, of which 38 are for resyncs
	b, leaveB := w.join(noBound)
	defer leaveA()
	defer leaveB()
	large := 60 // parts
	held, err := b.acquire(t.Context(), changes, large)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.acquire(t.Context(), changes, large)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := b.acquire(ctx, changes, large)
		gaveUp <- err
	}()
	w.awaitWaiting(t, 1)
	own := a.allOf(resyncs)
	if len(own) != 50 {
		t.Errorf("%d resyncs begin while a change of another table waits, want the share of 50", len(own))
	}
	resync := a.waitFor(t, resyncs, 1)
	cancel()
	if <-gaveUp == nil {
		t.Fatal("it has not given up")
	}
	(<-resync)()
	for _, release := range append(own, held, second) {
		release()
	}
}

// TestResyncsKeepATenthOfFewWorkers and not more, where memory bounds the workers far below the
// calls that Bigtable takes: of large items, or with many tables.
func TestResyncsKeepATenthOfFewWorkers(t *testing.T) {
	for _, c := range []struct{ parts, workers, least, most int }{{8, 24, 2, 3}, {50, 4, 0, 1}, {150, 1, 0, 1}} {
		w := &workers{half: 100}
		table, leave := w.join(func() int { return 2048 })
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		type batch struct {
			kind    kind
			release func()
		}
		var inWork []batch
		for {
			release, err := table.acquire(ended, resyncs, c.parts)
			if err != nil {
				break
			}
			inWork = append(inWork, batch{resyncs, release})
		}
		if len(inWork) != c.workers {
			t.Fatalf("%d workers for batches of %d parts, want %d", len(inWork), c.parts, c.workers)
		}
		got, ctx := make(chan batch, 2), t.Context()
		wait := func(k kind) {
			go func() {
				if release, err := table.acquire(ctx, k, c.parts); err == nil {
					got <- batch{k, release}
				}
			}()
		}
		wait(resyncs)
		wait(changes)
		var of [kinds]int
		for i := range 42 * c.workers {
			w.awaitWaiting(t, 2)
			inWork[0].release()
			next := <-got
			wait(next.kind)
			if inWork = append(inWork[1:], next); i < 2*c.workers {
				continue
			}
			of[next.kind]++
			if table.resyncs < c.least || table.resyncs > c.most {
				t.Fatalf("%d resyncs in work of %d workers, want %d to %d", table.resyncs, c.workers, c.least, c.most)
			}
		}
		if n := 40 * c.workers; of[resyncs] < n/14 || of[resyncs] > n/8 {
			t.Errorf("%d changes and %d resyncs have begun in %d workers", of[changes], of[resyncs], c.workers)
		}
		w.awaitWaiting(t, 2)
		for _, b := range inWork {
			b.release()
		}
		for range 2 {
			(<-got).release()
		}
		leave()
	}
}
