package apply

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// While no write succeeds Bigtable is away, and a row that waits for it must not become a dead
// letter.
func TestOnlyACallThatOthersPassedIsCutOff(t *testing.T) {
	const began = change.Millis(1_000_000)
	hour := change.Millis(parkAfter / time.Millisecond)
	for _, tt := range []struct {
		name    string
		now     change.Millis
		applied uint64 // since the call began
		want    bool
	}{
		{"nothing applied since", began + 2*hour, 0, false},
		{"not long enough", began + hour, 5, false},
		{"others were applied meanwhile", began + hour + 1, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := newQuarantine(func() change.Millis { return began }, nil, 0)
			q.applied.Store(7)
			c := new(call)
			q.watchCall(c)
			inner := c.begin(t.Context())
			for range defaultPark / parkPeriod {
				c.cutIfStuck(tt.now, 7+tt.applied)
			}
			if errors.Is(context.Cause(inner), errParked) {
				t.Error("cut off before it was observed for a minute")
			}
			c.cutIfStuck(tt.now, 7+tt.applied)
			if got := errors.Is(context.Cause(inner), errParked); got != tt.want {
				t.Errorf("cut off: %t, want %t", got, tt.want)
			}
			if err := c.end(t.Context(), inner, nil); err != nil {
				t.Error(err)
			}
			c.cutIfStuck(began+9*hour, 99) // nothing is in flight any more
		})
	}
}

// Rule 13: a process that was suspended finds every call that was in flight as old as one that is
// stuck, also while its connection is broken and that is not noticed yet. The next call of the lane
// has its own looks.
func TestCallThatEndsAfterASuspensionIsNotParked(t *testing.T) {
	now := change.Millis(1_000_000)
	q := newQuarantine(func() change.Millis { return now }, nil, 0)
	c := new(call)
	q.watchCall(c)
	for range 3 {
		inner := c.begin(t.Context())
		now += change.Millis(19 * time.Hour / time.Millisecond)
		q.applied.Add(1)
		for range 59 {
			c.cutIfStuck(now, q.applied.Load())
		}
		if err := c.end(t.Context(), inner, context.Cause(inner)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCallIsParkedOnlyBeforeRecordsAreLost: while there is retention left, or it is not known, a
// call that is stuck waits, whatever others do.
func TestCallIsParkedOnlyBeforeRecordsAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		left  time.Duration
		known bool
		want  bool
	}{
		"not known": {0, false, false}, "a lot": {ParkBelow + 1, true, false}, "little": {ParkBelow, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			now := change.Millis(1_000_000)
			q := newQuarantine(func() change.Millis { return now },
				func() (time.Duration, bool) { return c.left, c.known }, 0)
			call := new(call)
			q.watchCall(call)
			inner := call.begin(t.Context())
			now += 2 * change.Millis(parkAfter/time.Millisecond)
			q.applied.Add(1)
			ctx, end := context.WithTimeout(t.Context(), 2*defaultPark)
			defer end()
			if err := q.watch(ctx); err != nil {
				t.Error(err)
			}
			if got := errors.Is(context.Cause(inner), errParked); got != c.want {
				t.Errorf("%s left: cut off %t, want %t", name, got, c.want)
			}
		})
	}
}

// TestItemFromBeforeAGapIsNotFresh: the rows may have been healed of it already.
func TestItemFromBeforeAGapIsNotFresh(t *testing.T) {
	at := time.Now()
	for until, want := range map[change.Millis]bool{999: true, 1000: false, 1001: false} {
		x := &ResyncItem{Requested: 1000, ReadAt: at, GapsUntil: func() change.Millis { return until }}
		if got := x.Fresh(at.Add(time.Second)); got != want {
			t.Errorf("a gap until %d, read at %d: fresh is %t", until, x.Requested, got)
		}
	}
	if x := (&ResyncItem{Requested: 1000, ReadAt: at}); !x.Fresh(at.Add(time.Second)) {
		t.Error("an item without gaps is not fresh")
	}
}
