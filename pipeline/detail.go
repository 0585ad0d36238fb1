package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

const (
	detailWanted = 15 * time.Second        // how long a request makes the owner's looks publish details
	detailWait   = 1500 * time.Millisecond // for the first of them
	detailFresh  = 5 * time.Second         // a look that is not older need not be waited for
)

// detail is what a table's owner publishes for the page of the table, while somebody looks at it: an owner of ten
// thousand shards has better things to do.
type detail struct {
	wanted atomic.Int64 // until when, in nanoseconds of this machine's clock
	seen   atomic.Pointer[status.Detail]
}

// observe publishes the details of a state if they are wanted. The owner of the state calls it.
func (d *detail) observe(s *checkpoint.State, service change.Millis) {
	if time.Now().UnixNano() < d.wanted.Load() {
		d.seen.Store(status.DetailOf(s, service))
	}
}

// get returns the newest details, and waits shortly for fresh ones; nil where the owner shows none.
func (d *detail) get(ctx context.Context) *status.Detail {
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

// Detail returns what the page of a table shows beside its status: the shards and gaps as the owner saw them last, nil
// where this process does not own the table, and the points of the last hour. It is false for an unknown table.
func (p *Pipeline) Detail(ctx context.Context, source string) (d *status.Detail, hour []latency.Point, ok bool) {
	for _, t := range p.all() {
		if t.Source == source {
			return t.view.detail.get(ctx), t.view.history.Hour(), true
		}
	}
	return nil, nil, false
}
