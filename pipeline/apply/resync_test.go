package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

const plain = `
families: {d: {max_versions: 1}}
rules:
- name: all
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attrs: "*", to: "d:{attr}"}]
`

// Items that are older than the stream come in by resyncs, beside changes of the same items.
func TestResyncsBesideTheStreamLeaveTheSourcesCells(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = plain })
	for i := range 8 {
		x.Put("Orders", "p", fmt.Sprint(i), `"v":{"N":"1"},"was":{"S":"x"}`)
	}
	x.Stream.Trim(x.Clock.Now().Add(time.Hour)) // the stream knows nothing of them
	l := x.begin()
	l.settle()
	for i := range 8 {
		item := l.readLaterWith(fmt.Sprint(i), i%4)
		item.First = true
		if out := l.resync(item); out.Refused != nil || out.Written+out.Skipped != 1 {
			t.Errorf("item %d: %+v", i, out)
		}
	}
	l.settle()
	l.equal()
}

// readLaterWith reads an item, changes it meanwhile in three of four ways, and waits for the proof
// of the read.
func (l *owner) readLaterWith(sk string, way int) *ResyncItem {
	l.t.Helper()
	l.Clock.Advance(2 * time.Second)
	item := l.read("p", sk)
	switch way {
	case 1:
		l.Put("Orders", "p", sk, `"v":{"N":"2"}`)
	case 2:
		l.Delete("Orders", "p", sk)
	case 3:
		l.Update("Orders", "p", sk, "REMOVE was", "")
	}
	l.prove(item.Requested + 1000)
	return item
}

// laneState returns how many resyncs and changes wait in the lanes of the running pass.
func (l *owner) laneState() (resyncs, most, changes int) {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	if l.sink.lanes == nil {
		return 0, 0, 0
	}
	for i := range l.sink.lanes.all {
		ln := &l.sink.lanes.all[i]
		ln.mu.Lock()
		n := 0
		for i := range ln.waiting {
			if ln.waiting[i].op != nil {
				n++
			}
		}
		changes += len(ln.waiting) - n
		if ln.op != nil {
			n++
		}
		resyncs, most = resyncs+n, max(most, n)
		ln.mu.Unlock()
	}
	return resyncs, most, changes
}

// calling reports whether a call of a change is in flight: its worker has taken a batch, and what
// comes into the lane from now on waits there.
func (l *owner) calling() bool {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	return l.sink.lanes != nil && slices.ContainsFunc(l.sink.lanes.quarantine.calls, func(c *call) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.since > 0
	})
}

// Resyncs wait outside of a busy lane, all but one, so that they do not hold up the stream. The one
// in the lane begins after the changes that wait there.
func TestAtMostOneResyncWaitsInALane(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping, x.lanes = plain, 1 })
	l := x.begin()
	const n = 8
	for i := range n {
		l.Put("Orders", "p", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	l.settle()
	var items []*ResyncItem
	for i := range n {
		items = append(items, l.readLater("p", fmt.Sprint(i)))
	}
	x.Bigtable.Faults.RefuseRow([]byte("p#stuck"), codes.Unavailable, -1)
	l.Put("Orders", "p", "stuck", `"v":{"N":"1"}`)
	l.Until("the lane is stuck", l.calling)
	done := make(chan error, n)
	for _, item := range items {
		go func() {
			_, err := l.sink.Resync(t.Context(), item)
			done <- err
		}()
	}
	l.Until("one waits in the lane", func() bool { resyncs, _, _ := l.laneState(); return resyncs == 1 })
	for i := range n {
		l.Put("Orders", "p", fmt.Sprint(i), `"v":{"N":"2"}`)
	}
	l.Until("the changes wait beside it", func() bool {
		resyncs, most, changes := l.laneState()
		if most > 1 {
			t.Fatalf("%d resyncs in one lane, of %d", most, resyncs)
		}
		return changes >= n
	})
	x.Bigtable.Faults.Calm()
	for range n {
		l.Until("the resyncs are done", func() bool { return len(done) > 0 })
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	l.settle()
	l.equal()
}

// A halt of the sink ends its pass, and not the resync: that goes on in the next pass.
func TestResyncOutlivesThePass(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = plain })
	l := x.begin()
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	l.settle()
	item := l.readLater("p", "a")
	x.Bigtable.Faults.RefuseRow([]byte("p#denied"), codes.PermissionDenied, -1)
	l.Put("Orders", "p", "denied", `"v":{"N":"1"}`)
	l.Until("the sink is halted", func() bool {
		l.sink.mu.Lock()
		defer l.sink.mu.Unlock()
		return l.sink.lanes == nil
	})
	done := make(chan error, 1)
	go func() {
		_, err := l.sink.Resync(t.Context(), item)
		done <- err
	}()
	x.Bigtable.Faults.Calm()
	l.Until("the resync is done", func() bool { return len(done) > 0 })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.settle()
	l.equal()
}

// TestItemIsNotSentWithoutTheLog: Rule 12. An item that is read again is written only by the owner
// of the log. A life that ends leaves its part of the workers to the others.
func TestItemIsNotSentWithoutTheLog(t *testing.T) {
	var lost atomic.Bool
	claimed := errors.New("another process has claimed the log")
	x := newTable(t, func(x *table) {
		x.mapping = plain
		x.owned = func() error {
			if lost.Load() {
				return claimed
			}
			return nil
		}
	})
	l := x.begin()
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	l.settle()
	item := l.readLater("p", "a")
	writes := x.Bigtable.Writes()
	lost.Store(true)
	if _, err := l.sink.Resync(t.Context(), item); !errors.Is(err, claimed) {
		t.Errorf("the resync returned %v, want that the log is lost", err)
	}
	if n := x.Bigtable.Writes() - writes; n > 0 {
		t.Errorf("%d rows were written without the log", n)
	}
	l.stop()
	if n := l.shared.workers.tables; n != 0 {
		t.Errorf("%d tables have workers after the life has ended", n)
	}
}

// An owner that was frozen for a day must not write what it read before: the item may have been
// deleted in a gap since.
func TestFrozenOwnerWritesNoOldItem(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = plain })
	l := x.begin()
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	l.settle()
	item := l.readLater("p", "a")
	writes := x.Bigtable.Writes()
	x.Bigtable.Faults.RefuseRow([]byte("p#a"), codes.Unavailable, -1)
	frozen := make(chan time.Duration, 1)
	began := time.Now()
	l.shared.clock = (func() time.Time { // thaws a day later behind the first attempts
		if len(frozen) > 0 {
			return time.Now().Add(30 * time.Hour)
		}
		return time.Now()
	})
	done := make(chan error, 1)
	go func() {
		_, err := l.sink.Resync(t.Context(), item)
		done <- err
	}()
	l.Until("the first attempt was refused", func() bool { return time.Since(began) > 300*time.Millisecond })
	frozen <- 0
	// A try that is under way is refused, too: were the rows taken from now on, it might still
	// write them.
	l.Until("the resync ended", func() bool { return len(done) > 0 })
	if err := <-done; !errors.Is(err, ErrStale) {
		t.Errorf("the resync of an old item returned %v", err)
	}
	x.Bigtable.Faults.Calm()
	if n := x.Bigtable.Writes() - writes; n > 0 {
		t.Errorf("%d rows were written", n)
	}
	old := *item
	old.ReadAt = time.Now().Add(-PageAge - time.Second)
	if _, err := l.sink.Resync(t.Context(), &old); !errors.Is(err, ErrStale) {
		t.Errorf("an old item was taken: %v", err)
	}
	old.ReadAt = old.ReadAt.Round(0) // the monotonic clock stood still while the machine was suspended
	if _, err := l.sink.Resync(t.Context(), &old); !errors.Is(err, ErrStale) {
		t.Errorf("an old item was taken by the wall clock: %v", err)
	}
}

// Beats come every few milliseconds while the log is busy. A proven item is as good as it was.
func TestBeatsDoNotMakeAProvenItemOld(t *testing.T) {
	x := newTable(t, func(x *table) {
		x.mapping, x.periods.Beat = plain, 2*time.Millisecond
	})
	x.periods.Beat = 2 * time.Millisecond
	l := x.begin()
	for i := range 5 {
		l.Put("Orders", "p", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	for i := range 5 {
		l.resync(l.readLater("p", fmt.Sprint(i))) // the first read is written
	}
	l.equal()
}

// Changes between the request of a read and the put: a delete, a move, a new version. None is lost,
// in whatever order the put comes.
func TestPutLosesToWhatCameAfterTheRead(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = picky })
	l := x.begin()
	names := []string{"a", "b", "c"}
	for _, sk := range names {
		l.Put("Orders", "p", sk, `"at":{"S":"one"},"n":{"N":"1"},"v":{"S":"x"}`)
	}
	l.settle()
	var items []*ResyncItem
	l.Clock.Advance(90 * time.Second)
	for _, sk := range names {
		items = append(items, l.read("p", sk))
	}
	l.Delete("Orders", "p", "a")
	l.Put("Orders", "p", "b", `"at":{"S":"two"},"n":{"N":"2"}`)
	l.Put("Orders", "p", "c", `"at":{"S":"one"},"n":{"N":"3"}`)
	l.settle()
	for i, item := range items {
		if out := l.resync(item); out.Skipped == 0 || out.Hot == 0 {
			t.Errorf("item %s: %+v, want it skipped and hot", names[i], out)
		}
	}
	l.equal()
}

// A resync ends with its caller, also while it waits in a lane, and leaves the lane to others.
func TestResyncEndsWithItsCaller(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping, x.lanes = plain, 1 })
	l := x.begin()
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	l.settle()
	item := l.readLater("p", "a")
	x.Bigtable.Faults.RefuseRow([]byte("p#a"), codes.Unavailable, -1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for range 2 { // one with the worker, one before the lane
		go func() {
			_, err := l.sink.Resync(ctx, item)
			done <- err
		}()
	}
	l.Until("one is at work", func() bool { return len(l.sink.lanes.all[0].resyncToken()) == 1 })
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the resync of a caller that went away: %v", err)
		}
	}
	x.Bigtable.Faults.Calm()
	l.resync(item)
	l.equal()
}

const cascade = `
families: {d: {max_versions: 1}}
rules:
- name: video
  match: {pk: "{id}", sk: "Video"}
  row: "v#{id}"
  cells: [{attr: title, to: "d:title"}]
  on_remove: row
  acknowledged: [cascade]
- name: comment
  match: {pk: "{id}", sk: "Comment#{n}"}
  row: "v#{id}"
  cells: [{attr: text, to: "d:comment/{n}"}]
`

// A removal takes its row along, and lags. A comment that is copied before it would be lost for
// ever, because its guard stops the change that wrote it. The proof waits for the removal.
func TestCopyWaitsForALaggingRemovalOfTheWholeRow(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = cascade })
	l := x.begin()
	l.Put("Orders", "1", "Video", `"title":{"S":"t"}`)
	l.Put("Orders", "1", "Comment#1", `"text":{"S":"a"}`)
	l.settle()
	x.Bigtable.Faults.RefuseRow([]byte("v#1"), codes.Unavailable, -1)
	l.Delete("Orders", "1", "Video")
	l.Put("Orders", "1", "Comment#1", `"text":{"S":"b"}`)
	l.Clock.Advance(90 * time.Second)
	item := l.read("1", "Comment#1")
	done := make(chan error, 1)
	go func() {
		err := l.in.Prove(t.Context(), item.Requested+1000)
		if err == nil {
			_, err = l.sink.Resync(t.Context(), item)
		}
		done <- err
	}()
	l.untilMoving("the proof waits for Bigtable", func() bool { return strings.Contains(l.in.Unproven(), "Bigtable") })
	x.Bigtable.Faults.Calm()
	l.untilMoving("the comment is copied", func() bool { return len(done) > 0 })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.equal()
	if rows := l.stored(); len(rows) != 1 {
		t.Errorf("%d rows, want the comment's", len(rows))
	}
}

// A removal that takes its row along is under way, for some time. A comment that was read before it
// is written behind it: between two attempts of the removal, the second one would delete it again,
// for good.
func TestResyncTakesItsTurnBehindARemovalOfTheWholeRow(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = cascade })
	l := x.begin()
	l.Put("Orders", "1", "Video", `"title":{"S":"t"}`)
	l.Put("Orders", "1", "Comment#1", `"text":{"S":"a"}`)
	l.settle()
	item := l.readLater("1", "Comment#1")
	x.Bigtable.Faults.RefuseRow([]byte("v#1"), codes.Unavailable, -1)
	l.Delete("Orders", "1", "Video")
	l.Until("the pause between two attempts is long", func() bool {
		_, oldest := l.sink.Backlog()
		return oldest > 1500*time.Millisecond
	})
	x.Bigtable.Faults.Calm()
	l.resync(item)
	l.settle()
	l.equal()
}
