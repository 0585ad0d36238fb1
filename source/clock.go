package source

import (
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// serviceClock estimates the service's clock by the Date headers of its replies and our monotonic clock. Its readings
// never decrease.
type serviceClock struct {
	mu      sync.Mutex
	date    change.Millis // the service's time …
	at      time.Time     // … at this time of ours
	reading change.Millis // the latest one
}

// observe processes a Date header. It is cut to whole seconds and was written between our request and its reply, so it
// bounds the service's clock from both sides. An estimate below the lower bound is set to that, one above the upper
// bound to that. So a reply that took long changes nothing.
func (c *serviceClock) observe(date change.Millis, sent, replied time.Time) {
	const cut = 1000
	c.mu.Lock()
	defer c.mu.Unlock()
	estimate := c.date + since(c.at, replied)
	upper := date + cut + since(sent, replied)
	switch {
	case c.at.IsZero(), estimate < date:
		c.date, c.at = date, replied
	case estimate > upper:
		c.date, c.at = upper, replied
	}
}

// read returns the service's time at now. It is false before the first reply.
func (c *serviceClock) read(now time.Time) (change.Millis, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return 0, false
	}
	c.reading = max(c.reading, c.date+since(c.at, now))
	return c.reading, true
}

func since(from, to time.Time) change.Millis { return change.Millis(to.Sub(from).Milliseconds()) }
