package apply

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/transform"
)

// A row that Bigtable neither takes nor refuses holds the mark back. The log fills up behind it,
// reading pauses, and in the end DynamoDB trims what was not read. Before that happens the change
// is parked: it becomes a dead letter, and everything else goes on.
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
	patience  int // looks that find a call stuck, before the one that cuts it off
}

// call is what one lane has in flight. It may be cut off while other lanes make progress.
type call struct {
	q *quarantine

	mu     sync.Mutex    // covers what follows
	since  change.Millis // 0 while nothing is in flight
	before uint64        // writes of all lanes when it began
	looks  int           // that found it stuck
	cut    context.CancelCauseFunc
}

// defaultPark is longer than a connection lives that has broken while the process was suspended.
const defaultPark = time.Minute

// newQuarantine returns the quarantine of a pass. Calls are observed for park before they are cut
// off; 0: a minute.
func newQuarantine(
	now func() change.Millis, retention func() (time.Duration, bool), park time.Duration,
) *quarantine {
	return &quarantine{now: now, retention: retention, patience: int(cmp.Or(park, defaultPark) / parkPeriod)}
}

// watchCall adds the call of one more lane. It is not called any more once watch runs.
func (q *quarantine) watchCall(c *call) {
	c.q = q
	q.calls = append(q.calls, c)
}

// begin returns the context of the lane's next call.
func (c *call) begin(ctx context.Context) context.Context {
	inner, cut := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.before, c.looks, c.cut = c.q.now(), c.q.applied.Load(), 0, cut
	return inner
}

// end takes the error of the call that ran with begin's context inner; ctx is the context of the
// pass. For a call that was cut off it returns a refusal. Whether the write arrived is unknown, and
// does not matter: the write is conditional and its item is dirty from now on.
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

// cutIfStuck cuts the call off if it alone holds the rest back. While nothing is applied at all,
// Bigtable is away, and this row is not to blame.
//
// Rule 13: that a call is stuck is observed. The process may have been suspended for that hour, or
// the service's time have moved: then every call that was in flight looks as old. Most end at once,
// and those on a connection that has broken meanwhile end when that is noticed.
func (c *call) cutIfStuck(now change.Millis, applied uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == 0 || time.Duration(now-c.since)*time.Millisecond <= parkAfter || applied <= c.before {
		return
	}
	if c.looks++; c.looks > c.q.patience {
		c.cut(errParked)
	}
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
