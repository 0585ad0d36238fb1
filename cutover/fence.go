package cutover

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// findFence finds the fence that an earlier process has raised, in whole or in part.
func (c *Cutover) findFence(ctx context.Context) error {
	for _, t := range c.pair.Tables {
		row, err := c.pair.Sink().LoadState(ctx, c.cfg.Pipeline, t.Source)
		if err != nil {
			return bigtable.Explain(fmt.Errorf("load state of %s: %w", t.Source, err))
		}
		switch f := row.Fenced; {
		case f == nil || f.ID == c.id:
		case c.id != "":
			return c.refuseTwo(f)
		default:
			c.goOn(f)
		}
	}
	return nil
}

// raise fences all tables: first every row, then every log. Until all rows are fenced no log is, so
// a crash between leaves no table that stands alone.
func (c *Cutover) raise(ctx context.Context) error {
	if c.id == "" {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		c.id, c.fenced = hex.EncodeToString(b[:]), c.pair.Now()
	}
	if err := c.fenceRows(ctx); err != nil {
		return err
	}
	logs, err := c.unowned(ctx)
	if err != nil {
		return failure.With(failure.Unready,
			"`replicator cutover` again, when the log is there; or `replicator cutover --undo`",
			fmt.Errorf("cutover %s is fenced in tailrace_state, and a log cannot be read: %w", c.id, err))
	}
	for _, l := range logs {
		if l.State.Fence != nil && l.State.Fence.ID == c.id {
			continue
		}
		control := checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: c.id}}
		seq, err := l.Append(ctx, "fence", control)
		if err != nil {
			return err
		}
		c.Say("%s is fenced at entry %d of its log: nothing behind it is written to Bigtable.", l.Table, seq)
	}
	return nil
}

// fenceRows fences the rows of all tables. Of two cutovers that begin at once the one that comes
// second to the first row goes on with the other one's fence.
func (c *Cutover) fenceRows(ctx context.Context) error {
	for i, t := range c.pair.Tables {
		var other *bigtable.Fenced
		err := editRow(ctx, c.pair.Sink(), c.cfg.Pipeline, t.Source, func(s *bigtable.State) (changed bool) {
			if other = s.Fenced; other != nil {
				return false
			}
			s.Fenced = &bigtable.Fenced{ID: c.id, Time: c.fenced.Time().UTC()}
			return true
		})
		switch {
		case err != nil:
			return err
		case other == nil || other.ID == c.id:
		case i > 0:
			return c.refuseTwo(other)
		default:
			c.goOn(other)
			c.quiet = 0 // it was the other one that waited
		}
	}
	return nil
}

// goOn goes on with a fence that another process has raised, in whole or in part.
func (c *Cutover) goOn(f *bigtable.Fenced) {
	c.id, c.fenced = f.ID, change.MillisOf(f.Time)
	c.Say("Going on with cutover %s, fenced since %s.", c.id, c.fenced.Time().UTC().Format(time.RFC3339))
}

func (c *Cutover) refuseTwo(other *bigtable.Fenced) error {
	return refuse("the tables of the target have fences of two cutovers, %s and %s: undo both", c.id, other.ID)
}

// checkRows refuses tables if their rows in the state table have changed since the cutover began.
func (c *Cutover) checkRows(ctx context.Context) error {
	for _, t := range c.pair.Tables {
		row, err := c.pair.Sink().LoadState(ctx, c.cfg.Pipeline, t.Source)
		if err != nil {
			return bigtable.Explain(fmt.Errorf("load state of %s: %w", t.Source, err))
		}
		if err := c.checkRow(row, t.Identity(c.cfg.Pipeline, c.pair.Sink()).MappingHash); err != nil {
			return err
		}
	}
	return nil
}

// checkRow refuses a table that has no fence in its row any more: with a fence in the log alone, a
// table that loses its log would be recovered, over what the application has written. It also
// refuses a table if its mapping was switched while the cutover waited for the writers: cells that
// only the new mapping writes were not compared.
func (c *Cutover) checkRow(row *bigtable.State, mapping string) error {
	switch {
	case row.Fenced == nil || row.Fenced.ID != c.id:
		return undone(row.Identity.Table)
	case row.Identity.MappingHash != mapping:
		return refuse("the mapping of %s was changed meanwhile: `replicator cutover` again compares with the new one",
			row.Identity.Table)
	}
	return nil
}

// editRow changes the row of a table, also while its owner changes it.
func editRow(
	ctx context.Context, sink *bigtable.Client, pipeline, table string, edit func(*bigtable.State) (changed bool),
) error {
	for {
		row, err := sink.LoadState(ctx, pipeline, table)
		if errors.Is(err, bigtable.ErrNoState) {
			return nil // it was never replicated
		}
		if err != nil {
			return bigtable.Explain(fmt.Errorf("load state of %s: %w", table, err))
		}
		next := *row
		if !edit(&next) {
			return nil
		}
		err = sink.CompareAndSet(ctx, row, &next)
		if err == nil {
			return nil
		}
		if !errors.Is(err, bigtable.ErrStateChanged) {
			return bigtable.Explain(fmt.Errorf("fence %s: %w", table, err))
		}
	}
}
