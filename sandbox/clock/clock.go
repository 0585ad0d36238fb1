// Package clock is the time of one sandbox: the machine's clock plus an offset, or a virtual clock
// that stands still until it is advanced. It also has the sandbox's one way to wait on the
// machine's clock, Pause.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock is the clock that all parts of one sandbox share. It is safe for concurrent use. Make one
// with New or NewVirtual.
type Clock struct {
	mu      sync.Mutex
	virtual bool
	at      time.Time     // of a virtual clock: the present
	offset  time.Duration // of a running clock: added to the machine's
	moved   chan struct{} // closed and replaced whenever the clock is moved
}

// New returns a clock that runs at the machine's pace and starts at its time.
func New() *Clock { return &Clock{moved: make(chan struct{})} }

// NewVirtual returns a clock that shows start until it is advanced.
func NewVirtual(start time.Time) *Clock {
	return &Clock{virtual: true, at: start.UTC(), moved: make(chan struct{})}
}

// Now returns the present in UTC.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// now is Now for a caller that holds the lock.
func (c *Clock) now() time.Time {
	if c.virtual {
		return c.at
	}
	return time.Now().UTC().Add(c.offset)
}

// Advance moves the clock by d, which may be negative (a clock that steps back), and wakes all
// callers of Until.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.virtual {
		c.at = c.at.Add(d)
	} else {
		c.offset += d
	}
	close(c.moved)
	c.moved = make(chan struct{})
}

// Freeze makes a running clock virtual: it stands still at the present until it is advanced.
func (c *Clock) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.virtual = c.now(), true
}

// Virtual reports whether the clock stands still until it is advanced.
func (c *Clock) Virtual() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.virtual
}

// Moved returns a channel that the next Advance closes.
func (c *Clock) Moved() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

// Until blocks until the clock shows t or later, or until ctx ends: then it returns the context's
// cause.
func (c *Clock) Until(ctx context.Context, t time.Time) error {
	for {
		c.mu.Lock()
		left, moved, virtual := t.Sub(c.now()), c.moved, c.virtual
		c.mu.Unlock()
		if left <= 0 {
			return context.Cause(ctx)
		}
		var due <-chan time.Time // nil on a virtual clock, which moves by Advance alone
		if !virtual {
			due = time.After(left)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-moved:
		case <-due:
		}
	}
}

// Pause blocks for d of the machine's time, or until ctx ends: then it returns the context's cause.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
