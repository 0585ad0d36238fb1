package raw

import (
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Clock estimates the service's clock by the Date headers of its replies and our monotonic clock. Its readings
// never decrease.
type Clock struct {
	mu      sync.Mutex
	date    change.Millis // the service's time …
	at      time.Time     // … at this time of ours
	reading change.Millis // the latest one
}

// Observe processes the timing of a call with its Date header, and returns the service's time at the call's start,
// never a later one: the header less the time from our start until the reply. Without a header it changes nothing and
// returns 0.
//
// The header is cut to whole seconds and was written between our request and its reply, so it
// bounds the service's clock from both sides. An estimate below the lower bound is set to that, one above the upper
// bound to that. So a reply that took long changes nothing.
func (c *Clock) Observe(t Timing) change.Millis {
	if t.Server.IsZero() {
		return 0
	}
	const cut = 1000
	date := change.Millis(t.Server.UnixMilli())
	took := since(t.Sent, t.Replied)
	c.mu.Lock()
	defer c.mu.Unlock()
	estimate := c.date + since(c.at, t.Replied)
	upper := date + cut + took
	switch {
	case c.at.IsZero(), estimate < date:
		c.date, c.at = date, t.Replied
	case estimate > upper:
		c.date, c.at = upper, t.Replied
	}
	return date - took - 1
}

// Read returns the service's time at now. It is false before the first reply.
func (c *Clock) Read(now time.Time) (change.Millis, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return 0, false
	}
	c.reading = max(c.reading, c.date+since(c.at, now))
	return c.reading, true
}

func since(from, to time.Time) change.Millis { return change.Millis(to.Sub(from).Milliseconds()) }
