package apply

import "testing"

// waitForParts lets a resync of so many parts wait for a worker.
func (t *tableWorkers) waitForParts(test *testing.T, parts int) (got chan func()) {
	got = make(chan func(), 1)
	go func() {
		if release, err := t.acquire(test.Context(), resyncs, parts); err == nil {
			got <- release
		}
	}()
	t.all.awaitWaiting(test, 1)
	return got
}

// waitsFor reports whether a batch of a kind waits for a worker.
func (t *tableWorkers) waitsFor(k kind) bool {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.wants[k] > 0
}

// TestLargeResyncBeginsBesideSmallChanges, which take each part that is given back. Another one does
// not begin beside it, and the changes go on.
func TestLargeResyncBeginsBesideSmallChanges(t *testing.T) {
	const parts = 60
	w := &workers{half: 100}
	table, leave := w.join(noBound)
	defer leave()
	held := table.allOf(changes)
	table.since = 0
	resync := table.waitForParts(t, parts)
	// next gives the workers of changes back, the oldest first, until one more change has begun.
	next := func() {
		change := table.waitFor(t, changes, 1)
		for table.waitsFor(changes) {
			held[0]()
			held = held[1:]
		}
		held = append(held, <-change)
	}
	for n := 0; ; n++ {
		if next(); !table.waitsFor(resyncs) {
			break
		}
		if n > firstResync+parts {
			t.Fatal("a resync of a large item gets no worker beside small changes")
		}
	}
	large := <-resync
	resync = table.waitForParts(t, parts)
	for range 3 * parts {
		next()
	}
	if len(resync) != 0 {
		t.Error("two large resyncs have more than the share of their table")
	}
	large()
	for table.waitsFor(resyncs) {
		next()
	}
	(<-resync)()
	for _, release := range held {
		release()
	}
	if w.common != 0 || table.own != 0 || table.batches != 0 || table.resyncs != 0 {
		t.Errorf("not given back: %+v %+v", w, table)
	}
}

// TestResyncBeginsWithWhatChangesLeave of the parts that one batch gives back: no later release
// comes while the change that got the others hangs.
func TestResyncBeginsWithWhatChangesLeave(t *testing.T) {
	w := &workers{half: 100}
	a, leaveA := w.join(noBound)
	b, leaveB := w.join(noBound)
	defer leaveA()
	defer leaveB()
	resyncing := b.allOf(resyncs) // its share of 50, and the common half
	large, err := a.acquire(t.Context(), changes, 50)
	if err != nil {
		t.Fatal(err)
	}
	change := a.waitFor(t, changes, 0)
	resync := a.waitFor(t, resyncs, 1)
	large()
	defer (<-change)()
	if a.waitsFor(resyncs) {
		t.Fatal("the resync waits beside free workers")
	}
	defer (<-resync)()
	for _, release := range resyncing {
		release()
	}
}
