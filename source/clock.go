package source

import (
	"sync"
	"time"

	"github.com/aws/smithy-go/middleware"

	"github.com/tailrace-cdc/replicator/source/raw"
)

// Now is the service's clock in unix ms: the latest Date header, advanced by our own monotonic clock. It is
// false before the first reply.
func (s *Source) Now() (ms int64, ok bool) { return s.now.read(time.Now()) }

// nowOr is Now, or our own clock before the first reply.
func (s *Source) nowOr() int64 {
	if ms, ok := s.Now(); ok {
		return ms
	}
	return time.Now().UnixMilli()
}

// serviceClock remembers how far the service's clock is ahead of our monotonic one. What it tells never goes back.
type serviceClock struct {
	mu   sync.Mutex
	date int64     // unix ms
	at   time.Time // when it was true
	told int64     // the latest that was told
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
	c.told = max(c.told, c.date+now.Sub(c.at).Milliseconds())
	return c.told, true
}

// date is dated for a call that the SDK made.
func (s *Source) date(md middleware.Metadata, start time.Time) int64 {
	return s.dated(raw.TimingOf(md, start))
}

// dated returns the service's time of a call in unix ms, never later than the call's start: the Date header
// less the time that has passed from our start until its reply was there. It is 0 when the server sent none.
// It feeds the source's idea of the service's clock.
func (s *Source) dated(t raw.Timing) int64 {
	if t.Server.IsZero() {
		return 0
	}
	s.now.observe(t.Server.UnixMilli(), t.Sent, t.Replied)
	return t.Server.UnixMilli() - t.Replied.Sub(t.Sent).Milliseconds() - 1
}
