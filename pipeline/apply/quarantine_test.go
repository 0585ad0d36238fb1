package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// While no write succeeds Bigtable is away, and a row that waits for it must not become a dead letter.
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
			c := q.newCall()
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
	c := q.newCall()
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
