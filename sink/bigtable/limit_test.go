package bigtable

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestOverloadLowersTheBoundOncePerRound(t *testing.T) {
	l := newCallLimit(4, 64, 256)
	for range 64 {
		_ = l.Acquire(t.Context())
	}
	for range 40 {
		l.Release(time.Second, loadOverload)
	}
	for range 24 {
		l.Release(time.Second, loadNeutral)
	}
	if l.bound < 40 || l.bound > 45 {
		t.Errorf("bound %.1f after one round of failures, want 0.7 of 64", l.bound)
	}
	for range 10_000 {
		_ = l.Acquire(t.Context())
		l.Release(time.Second, loadOverload)
	}
	if l.bound != 4 {
		t.Errorf("bound %.1f after a long outage, want the lowest", l.bound)
	}
}

func TestSingleFailuresDoNotChangeTheBound(t *testing.T) {
	l := newCallLimit(4, 64, 64)
	for i := range 10_000 {
		_ = l.Acquire(t.Context())
		if i%20 == 0 {
			l.Release(time.Second, loadOverload)
		} else {
			l.Release(time.Millisecond, loadQuick)
		}
	}
	if l.bound != 64 {
		t.Errorf("bound %.1f although one call in twenty failed", l.bound)
	}
}

func TestQuickCallsRaiseTheBoundOnlyWhereItIsReached(t *testing.T) {
	l := newCallLimit(4, 64, 128)
	for range 10_000 {
		_ = l.Acquire(t.Context())
		l.Release(time.Millisecond, loadQuick)
	}
	if l.bound != 64 {
		t.Errorf("bound %.1f although one call at a time was made", l.bound)
	}
	for range 10_000 {
		for range 64 {
			_ = l.Acquire(t.Context())
		}
		for range 64 {
			l.Release(time.Millisecond, loadQuick)
		}
	}
	if l.bound != 128 {
		t.Errorf("bound %.1f, want the highest", l.bound)
	}
}

func TestQueueingAtTheServiceLowersTheBound(t *testing.T) {
	l := newCallLimit(4, 64, 128)
	l.Release(5*time.Millisecond, loadQuick)
	l.inFlight = 64
	for range 64 {
		l.Release(300*time.Millisecond, loadQuick)
	}
	if l.bound >= 64 {
		t.Errorf("bound %.1f, want it lower", l.bound)
	}
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCallLimit(1, 1, 1)
		_ = l.Acquire(t.Context())
		var order []int
		abandoned, cancel := context.WithCancel(t.Context())
		for i := range 6 {
			ctx := t.Context()
			if i == 2 {
				ctx = abandoned
			}
			go func() {
				if l.Acquire(ctx) == nil {
					order = append(order, i)
					l.Release(0, loadNeutral)
				}
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		l.Release(0, loadNeutral)
		synctest.Wait()
		want := []int{0, 1, 3, 4, 5}
		for i := range want {
			if len(order) != len(want) || order[i] != want[i] {
				t.Fatalf("served %v, want %v", order, want)
			}
		}
		if l.inFlight != 0 || len(l.waiting) != 0 {
			t.Errorf("%d in flight, %d waiting at the end", l.inFlight, len(l.waiting))
		}
	})
}
