package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/transform"
)

// A row that Bigtable neither takes nor refuses holds the mark back. The log fills up behind it, reading pauses,
// and in the end DynamoDB trims what was not read. Before that happens the change is parked: it becomes a dead
// letter, and everything else goes on.
const (
	parkAfter   = time.Hour    // of trying
	parkBelow   = lowRetention // of retention left
	parkingLook = time.Second
)

var errParked = errors.New("parked")

// call is what a lane has in flight. It may be cut off while other lanes get on.
type call struct {
	of *lanes

	mu     sync.Mutex
	since  int64  // service clock; 0 while nothing is in flight
	before uint64 // writes of all lanes, when it began
	cut    context.CancelCauseFunc
}

// do makes a call. One that was cut off is a refusal: whether the write arrived is not known, and does not
// matter, for it is conditional and its item is dirty from now on.
func (c *call) do(ctx context.Context, f func(context.Context) error) error {
	inner, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	c.mu.Lock()
	c.since, c.before, c.cut = c.of.t.now(), c.of.applied.Load(), cut
	c.mu.Unlock()
	err := f(inner)
	c.mu.Lock()
	c.since, c.cut = 0, nil
	c.mu.Unlock()
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(inner), errParked) {
		return &transform.Refusal{Code: outcome.CodeParked, What: "Bigtable neither took nor refused it for " + parkAfter.String() + ", and unread records were about to be lost"}
	}
	return err
}

// stuck cuts the call off if it is the one that keeps the rest waiting: while nothing is applied at all, it is
// Bigtable that is away, and not this row.
func (c *call) stuck(now int64, applied uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since > 0 && time.Duration(now-c.since)*time.Millisecond > parkAfter && applied > c.before {
		c.cut(errParked)
	}
}

// park looks after calls that take too long, while the retention is short.
//
// Rule 8: what is parked is a dead letter, with its reason; what DynamoDB trims is lost.
func (l *lanes) park(ctx context.Context) error {
	tick := time.NewTicker(parkingLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if left := l.t.status(time.Now()).Retention; left < 0 || left > parkBelow.Seconds() {
			continue
		}
		now, applied := l.t.now(), l.applied.Load()
		for _, c := range l.calls {
			c.stuck(now, applied)
		}
	}
}
