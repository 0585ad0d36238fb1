package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// Checker settles what may differ, changes nothing, and hands on what it finds.
type Checker struct {
	Settler
	Batch int // candidates that are settled at once; default 1,000

	// Verdict receives every item that was settled, whatever its status.
	Verdict func(*Verdict) error
	// Cell receives every cell of the target whose owner is not known or cannot be told: foreign, sealed and unowned ones.
	Cell func(*Open) error
}

const checkedAtOnce = 1000

// Findings settles all candidates of a full comparison. Of the foreign and sealed cells it looks again at the first
// million, hands on those that still are, and corrects the counts of the findings.
func (c *Checker) Findings(ctx context.Context, found *Findings) error {
	if err := c.lookAgain(ctx, found, c.Cell); err != nil {
		return err
	}
	n := c.batch()
	if err := found.Candidates(n, func(batch []Candidate) error { return c.settle(ctx, batch) }); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return found.unownedRows(n, func(rows []string) error { return c.unowned(ctx, rows) })
}

// unowned settles rows with cells whose owner cannot be told.
func (c *Checker) unowned(ctx context.Context, rows []string) error {
	cells, err := c.settleRows(ctx, rows)
	for i := range cells {
		err = errors.Join(err, c.Cell(&cells[i]))
	}
	if err != nil {
		return fmt.Errorf("settle rows: %w", err)
	}
	return nil
}

// Cells looks again at cells that had no known owner before a time, and hands on those that have none now either. Items
// that own one of the others have changed since, and are not looked at.
func (c *Checker) Cells(ctx context.Context, seen change.Millis, each func(func(*Open) error) error) error {
	var rows []string
	look := c.secondLook(c.Cell)
	look.Owned = func(Kind, item, []byte) {}
	look.Untold = func(row []byte) { rows = append(rows, string(row)) }
	if _, err := look.At(ctx, seen+proofMargin, each); err != nil {
		return fmt.Errorf("look again at cells without an owner: %w", err)
	}
	slices.Sort(rows)
	for some := range slices.Chunk(slices.Compact(rows), c.batch()) {
		if err := c.unowned(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checker) batch() int {
	return cmp.Or(c.Batch, checkedAtOnce)
}

// Items settles some items.
func (c *Checker) Items(ctx context.Context, items []Candidate) error {
	for batch := range slices.Chunk(items, c.batch()) {
		if err := c.settle(ctx, batch); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
	return nil
}

func (c *Checker) settle(ctx context.Context, batch []Candidate) error {
	verdicts, err := c.Settle(ctx, batch)
	if err != nil {
		return err
	}
	for i := range verdicts {
		if err := c.Verdict(&verdicts[i]); err != nil {
			return err
		}
	}
	return nil
}
