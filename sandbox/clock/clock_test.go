package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

func TestVirtualClockWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		c := clock.NewVirtual(start)
		done := make(chan error)
		go func() { done <- c.Until(t.Context(), start.Add(time.Hour)) }()
		for range 2 {
			synctest.Wait()
			select {
			case <-done:
				t.Fatal("woke up too early")
			default:
			}
			c.Advance(30 * time.Minute)
		}
		if err := <-done; err != nil || !c.Now().Equal(start.Add(time.Hour)) {
			t.Errorf("%v at %v", err, c.Now())
		}
	})
}

func TestRunningClockCanBeAdvancedAndFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		begun := time.Now()
		c.Advance(time.Hour)
		if err := c.Until(t.Context(), begun.Add(time.Hour+time.Minute)); err != nil {
			t.Error(err)
		}
		if passed := time.Since(begun); passed != time.Minute {
			t.Errorf("%v passed, want a minute", passed)
		}
		c.Freeze()
		at := c.Now()
		<-time.After(time.Second) // of the bubble's time
		if !c.Now().Equal(at) || !c.Virtual() {
			t.Error("frozen clock runs")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Until(ctx, at.Add(time.Nanosecond)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait on a frozen clock: %v", err)
		}
	})
}
