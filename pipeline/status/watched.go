package status

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
)

const (
	detailWanted = 15 * time.Second        // how long a request makes the owner's looks publish details
	detailWait   = 1500 * time.Millisecond // for the first of them
	detailFresh  = 5 * time.Second         // a look that is not older need not be waited for
)

// Watched is what a table's owner publishes for the page of the table while the page is open: an
// owner of ten thousand shards does not compute it otherwise.
type Watched struct {
	wanted atomic.Int64 // until when, in nanoseconds of this machine's clock
	seen   atomic.Pointer[Detail]
}

// Observe publishes the details of a state if they are wanted. The owner of the state calls it.
func (d *Watched) Observe(s *checkpoint.State, service change.Millis) {
	if time.Now().UnixNano() < d.wanted.Load() {
		d.seen.Store(DetailOf(s, service))
	}
}

// Get returns the newest details, and waits shortly for fresh ones; nil where the owner shows none.
func (d *Watched) Get(ctx context.Context) *Detail {
	d.wanted.Store(time.Now().Add(detailWanted).UnixNano())
	for deadline := time.Now().Add(detailWait); ; {
		seen := d.seen.Load()
		if seen != nil && time.Since(seen.LookedAt) < detailFresh || time.Now().After(deadline) {
			return seen
		}
		if failure.Pause(ctx, 50*time.Millisecond) != nil {
			return seen
		}
	}
}
