// Package clock is the sandbox's notion of time: the machine's clock shifted by
// what was asked for, or a virtual clock that stands still until it is advanced.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock tells the time to every part of one sandbox. It is safe for concurrent use.
// The zero value is not usable; see New and NewVirtual.
type Clock struct {
	mu      sync.Mutex
	virtual bool
	at      time.Time     // virtual: the present
	offset  time.Duration // real: added to the machine's clock
	moved   chan struct{} // closed and replaced whenever the clock is moved
}

// New returns a clock that runs with the machine's and can be advanced past it.
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

func (c *Clock) now() time.Time {
	if c.virtual {
		return c.at
	}
	return time.Now().UTC().Add(c.offset)
}

// Advance moves the clock by d, which may be negative (the service's clock stepping
// back), and wakes everybody who waits in Until.
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

// Freeze makes a running clock virtual: it stands still at the present until advanced.
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

// Moved is closed when the clock is next moved by Advance.
func (c *Clock) Moved() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

// Until blocks until the clock shows t or later, or ctx ends; then it returns the
// context's error.
func (c *Clock) Until(ctx context.Context, t time.Time) error {
	for {
		c.mu.Lock()
		left, moved, virtual := t.Sub(c.now()), c.moved, c.virtual
		c.mu.Unlock()
		if left <= 0 {
			return ctx.Err()
		}
		if err := wait(ctx, left, moved, virtual); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, left time.Duration, moved <-chan struct{}, virtual bool) error {
	var due <-chan time.Time
	if !virtual {
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-moved:
	case <-due:
	}
	return nil
}
