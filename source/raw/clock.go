package raw

import (
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Clock estimates the service's clock by the Date headers of its replies and our monotonic clock.
// The estimate is a time that the service's clock has passed: a Date is cut to whole seconds, and
// our clock counts slower than it runs. Where replies come often, one comes just behind the begin
// of a second, and the estimate is as exact as the time between two replies. Readings never
// decrease.
type Clock struct {
	mu      sync.Mutex
	dates   Dates
	date    change.Millis // the service's clock has passed it …
	at      time.Time     // … at this time of ours
	reading change.Millis // the latest one
}

// clockError is the part of a time that our monotonic clock may count too much: 1 in 1,000, twice
// what NTP may correct a clock by. If it were too small, a call would count as sent later than it
// was; with ten times as much, the estimate would lose ten milliseconds in each second without a
// better reply.
const clockError = 1000

// passed returns a time that the service's clock has passed at a time of ours.
func (c *Clock) passed(at time.Time) change.Millis {
	took := since(c.at, at)
	if took < 0 {
		return c.date + took + took/clockError - 1
	}
	return c.date + took - took/clockError
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
// the call's start, never a later one: the later of the estimate, and of the header less the time
// from our start until the reply. Without a header it changes nothing and returns 0. A Date that is
// dropped changes nothing either: then the earlier of header and estimate is returned.
//
// The header is cut to whole seconds and was written between our request and its reply, so it
// bounds the service's clock from both sides. An estimate outside of the bounds is set to the lower
// one. So a reply that took long changes nothing.
func (c *Clock) Observe(t Timing) (requested change.Millis, judged Judgement) {
	if t.Server.IsZero() {
		return 0, DateGood
	}
	const cut = 1000
	date := change.Millis(t.Server.UnixMilli())
	took := since(t.Sent, t.Replied)
	c.mu.Lock()
	defer c.mu.Unlock()
	estimate := c.passed(t.Replied)
	upper := date + cut + took
	judged = c.dates.Judge(date, instantOf(t.Replied), took)
	switch {
	case judged == DateDropped:
		return min(date, estimate) - took - 1, judged
	case c.at.IsZero(), estimate < date, estimate > upper, judged == DateBelieved:
		c.date, c.at = date, t.Replied
	}
	return max(date-took-1, c.passed(t.Sent)), judged
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
	c.reading = max(c.reading, c.passed(now))
	return c.reading, true
}

func since(from, to time.Time) change.Millis { return change.Millis(to.Sub(from).Milliseconds()) }
