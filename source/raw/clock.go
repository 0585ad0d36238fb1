package raw

import (
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Clock estimates the service's clock by the Date headers of its replies and our monotonic clock.
// Its readings never decrease.
type Clock struct {
	mu      sync.Mutex
	dates   Dates
	date    change.Millis // the service's time …
	at      time.Time     // … at this time of ours
	reading change.Millis // the latest one
}

// Trust sets Dates.Trust. It is called before the first reply.
func (c *Clock) Trust(d time.Duration) { c.dates.Trust = d }

// Uncertain returns Dates.Uncertain.
func (c *Clock) Uncertain() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dates.Uncertain()
}

// Apart returns Dates.Apart.
func (c *Clock) Apart() change.Millis {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dates.Apart()
}

// Observe processes the timing of a call with its Date header, and returns the service's time at
// the call's start, never a later one: the header less the time from our start until the reply.
// Without a header it changes nothing and returns 0. A Date that is dropped changes nothing either:
// then the earlier of header and estimate is returned.
//
// The header is cut to whole seconds and was written between our request and its reply, so it
// bounds the service's clock from both sides. An estimate below the lower bound is set to that, one
// above the upper bound to that. So a reply that took long changes nothing.
func (c *Clock) Observe(t Timing) (requested change.Millis, judged Judgement) {
	if t.Server.IsZero() {
		return 0, DateGood
	}
	const cut = 1000
	date := change.Millis(t.Server.UnixMilli())
	took := since(t.Sent, t.Replied)
	c.mu.Lock()
	defer c.mu.Unlock()
	estimate := c.date + since(c.at, t.Replied)
	upper := date + cut + took
	judged = c.dates.Judge(date, instantOf(t.Replied), took)
	switch {
	case judged == DateDropped:
		return min(date, estimate) - took - 1, judged
	case c.at.IsZero(), estimate < date, judged == DateBelieved:
		c.date, c.at = date, t.Replied
	case estimate > upper:
		c.date, c.at = upper, t.Replied
	}
	return date - took - 1, judged
}

// began is where monotonic times of instants count from.
var began = time.Now()

func instantOf(t time.Time) Instant {
	return Instant{Mono: t.Sub(began), Wall: change.Millis(t.UnixMilli())}
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
