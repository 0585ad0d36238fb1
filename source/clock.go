package source

import (
	"sync"
	"time"
)

// serviceClock remembers how far the service's clock is ahead of our monotonic one. What it tells never goes back.
type serviceClock struct {
	mu     sync.Mutex
	date   int64     // unix ms
	at     time.Time // when it was true
	latest int64     // the latest that was told
}

// observe takes a Date header. It is cut to whole seconds and was written at some time between our request and its
// reply, so that it bounds the service's clock from both sides. Only a clock outside of these bounds is set: to the
// earlier one where it was behind, to the later one where it was ahead. So a reply that was long under way changes
// nothing.
func (c *serviceClock) observe(date int64, sent, replied time.Time) {
	const cut = 1000
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.date + replied.Sub(c.at).Milliseconds()
	latest := date + cut + replied.Sub(sent).Milliseconds()
	switch {
	case c.at.IsZero(), known < date:
		c.date, c.at = date, replied
	case known > latest:
		c.date, c.at = latest, replied
	}
}

func (c *serviceClock) read(now time.Time) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return 0, false
	}
	c.latest = max(c.latest, c.date+now.Sub(c.at).Milliseconds())
	return c.latest, true
}
