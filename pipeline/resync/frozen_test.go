package resync

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestOwnerIsFrozenAtEachStep while the next one takes the copy back and ends it. What the frozen
// one sends afterwards opens no order again.
func TestOwnerIsFrozenAtEachStep(t *testing.T) {
	for left, more := 1, true; more; left++ {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				frozen := &mortal{delegated: newDelegated(t, [][]string{{"a", "b"}, {"c"}}), after: true}
				ctx, end := context.WithCancel(t.Context())
				go func() { // a worker
					for n := 0; failure.Pause(ctx, time.Minute) == nil; {
						frozen.mu.Lock()
						open := frozen.order.Open()
						frozen.mu.Unlock()
						if open && n < 2 {
							frozen.mark(n, "backfill-1.77", []int64{1}[:1-n]...)
							n++
						}
					}
				}()
				thaw, froze := make(chan struct{}), make(chan struct{})
				frozen.freeze = func() { close(froze); <-thaw }
				lost := make(chan struct{})
				go func() { frozen.own(left); close(lost) }()
				select {
				case <-froze:
					more = true
				case <-lost:
					more = false
				}
				if more {
					next := &mortal{delegated: frozen.delegated}
					frozen.lost = true
					next.state.TakenBack = next.state.Delegated > 0
					next.own(0)
				}
				close(thaw)
				<-lost
				_ = failure.Pause(t.Context(), time.Hour)
				end()
				synctest.Wait()
				if frozen.order.Open() || frozen.state.Delegated > 0 {
					t.Errorf("not closed: %+v", frozen.order)
				}
				for i := range frozen.files {
					if !frozen.state.Marks[i].Done {
						t.Errorf("file %d is not copied", i)
					}
				}
			})
		})
	}
}
