package bigtable

import (
	"context"
	"testing"
	"testing/synctest"
)

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
					l.Release(0, loadNeutral, false)
				}
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		l.Release(0, loadNeutral, false)
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
