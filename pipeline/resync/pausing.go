package resync

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// pause notes why the copy pauses, and returns the error that ends its work; storePause stores the
// reason then. The stream goes on.
func (c *Copier) pause(why string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copy.PausedWhy == "" {
		c.copy.PausedWhy, c.unstored = why, true
		c.o.Logger.Error("the copy pauses", zap.String("copy", c.copy.ID), zap.String("reason", why))
	}
	return errPaused
}

// storePause stores why the copy pauses, if that is not stored yet. It must not be called by the
// work that pause ends: that work is canceled, and an append that nothing cancels would never
// return once the write loop has ended.
func (c *Copier) storePause(ctx context.Context) error {
	c.mu.Lock()
	why, unstored := c.copy.PausedWhy, c.unstored
	c.mu.Unlock()
	if !unstored {
		return nil
	}
	if err := c.o.Append(ctx, &checkpoint.CopyMarks{ID: c.copy.ID, Paused: why, Date: c.o.Now()}); err != nil {
		return fmt.Errorf("store why the copy pauses: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unstored = false
	return nil
}

// pausing reports whether the copy has found a reason to pause.
func (c *Copier) pausing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copy.PausedWhy != ""
}
