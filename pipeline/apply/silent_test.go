package apply

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/tailrace-cdc/replicator/pipeline/life"
)

// Rule 12: beats fail for as long as a claim lives, so another process may own the log, and then
// one succeeds. In between the owner has changes in hand, of which it writes none: it asks before
// each attempt, and the attempt waits.
func TestSilentOwnerWritesNothingInBetween(t *testing.T) {
	var silent atomic.Bool
	asked, beat := make(chan struct{}, 1), make(chan struct{})
	x := newTable(t, func(x *table) {
		x.mapping = plain
		x.owned = func() error {
			if silent.Load() {
				select {
				case asked <- struct{}{}:
				default:
				}
				<-beat
			}
			return nil
		}
	})
	l := x.begin()
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	l.settle()
	writes := x.Bigtable.Writes()
	silent.Store(true)
	for _, sk := range []string{"a", "b", "c"} {
		l.Put("Orders", "p", sk, `"v":{"N":"2"}`)
	}
	l.untilMoving("a write is due", func() bool { return len(asked) > 0 || x.Bigtable.Writes() > writes })
	l.untilMoving("all changes are in the log", func() bool {
		log, err := x.queue.Log(t.Context(), "Orders")
		if err != nil {
			return false
		}
		s, err := log.Fold(t.Context())
		return err == nil && s.Changes == 4
	})
	if n := x.Bigtable.Writes() - writes; n > 0 {
		t.Errorf("%d rows were written while another process may have owned the log", n)
	}
	silent.Store(false)
	close(beat)
	l.settle()
	l.equal()
}

// TestReadingGrowsOldWhileTheProcessIsSuspended: the monotonic clock stands still meanwhile, and a
// wall clock may be set back. What either of them says is the age.
func TestReadingGrowsOldWhileTheProcessIsSuspended(t *testing.T) {
	read := time.Now()
	for name, c := range map[string]struct {
		now   time.Time
		stale bool
	}{
		"just read":                           {read.Add(time.Second), false},
		"old":                                 {read.Add(PageAge), true},
		"suspended":                           {wallMoved(t, read.Add(time.Second), PageAge), true},
		"the wall clock was set back":         {wallMoved(t, read.Add(PageAge), -time.Hour), true},
		"the wall clock was set back, before": {wallMoved(t, read.Add(time.Second), -time.Hour), false},
	} {
		now := c.now
		pass := &lanePass{o: &Options{Life: &life.Life{}}, shared: &Shared{clock: func() time.Time { return now }}}
		r := &resyncing{worker: &worker{lanePass: pass}, item: &ResyncItem{ReadAt: read}}
		if err := r.fresh(); errors.Is(err, ErrStale) != c.stale {
			t.Errorf("%s: %v, read %s ago", name, err, ageOf(r.item, now))
		}
	}
}

// wallMoved returns a time whose wall clock was moved while the monotonic clock stood still, as by
// a suspended machine. Nothing in package time makes one: its seconds begin at bit 30 of the first
// word.
func wallMoved(t *testing.T, at time.Time, by time.Duration) time.Time {
	t.Helper()
	moved := at
	*(*uint64)(unsafe.Pointer(&moved)) += uint64(int64(by/time.Second)) << 30
	if moved.Sub(at) != 0 || moved.Round(0).Sub(at.Round(0)) != by {
		t.Fatalf("%s moved by %s is %s", at, by, moved)
	}
	return moved
}
