package resync

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// mark stores the marks of what was copied and writes a line to the log from time to time, until
// all parts are done.
func (c *Copier) mark(ctx context.Context) error {
	mark, report := time.NewTicker(c.o.Periods.Mark), time.NewTicker(c.o.Periods.Report)
	defer mark.Stop()
	defer report.Stop()
	look := time.NewTicker(min(c.o.Periods.Mark, lookEvery))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
			if c.parts.allDone() {
				return c.finish(ctx)
			}
		case <-mark.C:
			if err := c.saveMarks(ctx); err != nil {
				return err
			}
		case <-report.C:
			p := c.Progress()
			c.o.Logger.Info("copying", zap.String("copy", p.ID), zap.String("progress", p.Sentence()))
		}
	}
}

// lookEvery is how soon the end of a copy is seen.
const lookEvery = 100 * time.Millisecond

// finish stores the last marks.
func (c *Copier) finish(ctx context.Context) error {
	if err := c.saveMarks(ctx); err != nil {
		return err
	}
	total := c.parts.total()
	c.o.Logger.Info("copied", zap.String("copy", c.copy.ID), zap.Int64("items", total.Items),
		zap.Int64("bytes", total.Bytes), zap.Int64("dead_letters", total.Letters))
	return nil
}

// maxMarks bounds the bytes of keys in one entry of marks.
const maxMarks = 256 << 10

// Save stores what Run could not store: the marks that have moved since the last time, and why the
// copy pauses, if it does.
func (c *Copier) Save(ctx context.Context) error {
	if next := c.next.Load(); next != nil {
		return next.Save(ctx)
	}
	if err := c.storePause(ctx); err != nil {
		return err
	}
	return c.saveMarks(ctx)
}

// saveMarks stores the marks of the parts that have moved since the last time.
func (c *Copier) saveMarks(ctx context.Context) error {
	moved := c.parts.takeMoved()
	if err := c.orderResync(ctx); err != nil {
		c.parts.putBack(moved)
		return err
	}
	for len(moved) > 0 {
		m := &checkpoint.CopyMarks{ID: c.copy.ID, Parts: map[int]checkpoint.CopyMark{}, Date: c.o.Now()}
		size := 0
		for i, mark := range moved {
			if size += len(mark.After) + 100; size > maxMarks && len(m.Parts) > 0 {
				break
			}
			m.Parts[i] = mark
			delete(moved, i)
		}
		if err := c.o.Append(ctx, m); err != nil {
			c.parts.putBack(m.Parts)
			c.parts.putBack(moved)
			return fmt.Errorf("store the marks of the copy: %w", err)
		}
	}
	return nil
}

// orderResync is called before marks are stored, and orders a resync if they may be the last ones:
// after those nothing would ask for it. Where removals delete whole rows, these may have held cells
// of items that were copied before the removal and not changed since, so the rows are compared with
// the table once, and repaired.
func (c *Copier) orderResync(ctx context.Context) error {
	if !c.o.WipesRows || c.ordered || !c.parts.allDone() {
		return nil
	}
	order := &checkpoint.ResyncOrder{ID: "after-" + c.copy.ID}
	if err := c.o.Append(ctx, &checkpoint.Control{Resync: order, By: "owner", At: c.o.Now()}); err != nil {
		return fmt.Errorf("order the resync after the copy: %w", err)
	}
	c.ordered = true
	return nil
}
