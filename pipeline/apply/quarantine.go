package apply

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/transform"
)

// A row that Bigtable neither takes nor refuses holds the mark back. The log fills up behind it, reading pauses, and in
// the end DynamoDB trims what was not read. Before that happens the change is parked: it becomes a dead letter, and
// everything else goes on.
const (
	parkAfter  = time.Hour     // of trying
	parkPeriod = time.Second   // between two looks at the calls in flight
	ParkBelow  = 6 * time.Hour // ParkBelow is how little retention is left when calls are parked.
)

var errParked = errors.New("parked")

// quarantine watches the calls of all lanes of a pass.
type quarantine struct {
	calls     []*call
	applied   atomic.Uint64 // writes of this pass
	now       func() change.Millis
	retention func() (time.Duration, bool)
}

// call is what one lane has in flight. It may be cut off while other lanes make progress.
type call struct {
	q *quarantine

	mu     sync.Mutex    // covers what follows
	since  change.Millis // 0 while nothing is in flight
	before uint64        // writes of all lanes when it began
	stuck  bool          // it was stuck at the last look
	cut    context.CancelCauseFunc
}

func newQuarantine(now func() change.Millis, retention func() (time.Duration, bool)) *quarantine {
	return &quarantine{now: now, retention: retention}
}

// newCall returns the call of one more lane. It is not called any more once watch runs.
func (q *quarantine) newCall() *call {
	c := &call{q: q}
	q.calls = append(q.calls, c)
	return c
}

// begin returns the context of the lane's next call.
func (c *call) begin(ctx context.Context) context.Context {
	inner, cut := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.before, c.stuck, c.cut = c.q.now(), c.q.applied.Load(), false, cut
	return inner
}

// end takes the error of the call that ran with begin's context inner; ctx is that of the pass. For a call that was cut
// off it returns a refusal: whether the write arrived is unknown, and does not matter, because the write is conditional
// and its item is dirty from now on.
func (c *call) end(ctx, inner context.Context, err error) error {
	c.mu.Lock()
	cut := c.cut
	c.since, c.cut = 0, nil
	c.mu.Unlock()
	defer cut(nil)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(inner), errParked) {
		return &transform.Refusal{Code: outcome.CodeParked, What: "Bigtable neither took nor refused it for " +
			parkAfter.String() + ", and unread records were about to be lost"}
	}
	return err
}

// cutIfStuck cuts the call off if it alone holds the rest back. While nothing is applied at all, Bigtable is away, and
// this row is not to blame.
//
// Rule 13: it takes two looks that agree. The process may have been suspended for that hour: then
// every call that was in flight looks as old, and ends at once.
func (c *call) cutIfStuck(now change.Millis, applied uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == 0 || time.Duration(now-c.since)*time.Millisecond <= parkAfter || applied <= c.before {
		return
	}
	if c.stuck {
		c.cut(errParked)
	}
	c.stuck = true
}

// watch cuts off calls that take too long, while little retention is left.
//
// Rule 8: what is parked is a dead letter, with its reason; what DynamoDB trims is lost.
func (q *quarantine) watch(ctx context.Context) error {
	tick := time.NewTicker(parkPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if left, known := q.retention(); !known || left > ParkBelow {
			continue
		}
		now, applied := q.now(), q.applied.Load()
		for _, c := range q.calls {
			c.cutIfStuck(now, applied)
		}
	}
}
