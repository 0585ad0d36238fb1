package bigtable

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
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

// TestCallsPassOnTheBound: each tells its table's limit whether the processors are short, which the
// client observes, and tells workers and connections what the bound is.
func TestCallsPassOnTheBound(t *testing.T) {
	c := open(t, "127.0.0.1:1")
	c.cpu.short.Store(true)
	for deadline := time.Now().Add(time.Minute); c.cpu.Short(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody observes the processors")
		}
	}
	c.stopWatch()
	if err := c.watching.Wait(); err != nil {
		t.Fatal(err)
	}
	x := c.table("orders")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, short := range []bool{true, false} {
		c.cpu.short.Store(short)
		if err := x.send(ended, &request{}, 0); err == nil {
			t.Error("a call was made in a context that has ended")
		}
		if x.limit.bound.held != short {
			t.Errorf("processors are short: %t, the bound is held: %t", short, x.limit.bound.held)
		}
	}
	x.limit.bound.calls = 100
	_ = x.send(ended, &request{}, 0)
	if got := c.Bound("orders"); got != 100 || c.conn.size() != 2 {
		t.Errorf("workers follow a bound of %d, and %d connections, want 100 and 2", got, c.conn.size())
	}
}
