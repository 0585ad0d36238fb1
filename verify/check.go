package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// Checker settles what may differ, changes nothing, and hands on what it finds. What a look decides
// needs no proof; the rest is settled in batches, each of which waits for one.
type Checker struct {
	Settler
	Batch int // candidates that are settled at once; default 1,000

	// Verdict receives every item that was settled, whatever its status.
	Verdict func(*Verdict) error
	// Cell receives every cell of the target without a known owner: foreign, sealed and unowned
	// ones.
	Cell func(*Open) error

	waiting  []Candidate   // items that a look did not decide, fewer than a batch
	notEqual map[item]bool // items that Verdict has received as not equal, the first of them
}

// mostNotEqual bounds the memory of Checker.notEqual. Beyond it, an item that is not equal may be
// handed on twice, if it has come to own one of the cells without a known owner.
const mostNotEqual = 100_000

const checkedAtOnce = 1000

// Findings settles all candidates of a full comparison. Of the foreign and sealed cells it looks
// again at the first million, hands on those that still are, and corrects the counts of the
// findings.
func (c *Checker) Findings(ctx context.Context, found *Findings) error {
	if err := c.lookAgain(ctx, found, c.Cell); err != nil {
		return err
	}
	n := c.batch()
	if err := c.Each(ctx, func(f func([]Candidate) error) error { return found.Candidates(n, f) }); err != nil {
		return err
	}
	return found.unownedCells(n, func(cells []Open) error { return c.unowned(ctx, cells) })
}

// unowned settles cells without a certain owner.
func (c *Checker) unowned(ctx context.Context, some []Open) error {
	cells, owned, err := c.settleCells(ctx, some)
	for i := range cells {
		err = errors.Join(err, c.Cell(&cells[i]))
	}
	if err != nil {
		return fmt.Errorf("settle cells: %w", err)
	}
	return c.owners(ctx, owned)
}

// Cells looks again at cells that had no known owner before a time, and hands on those that have
// none now either. Items that own one of the others by now are settled.
func (c *Checker) Cells(ctx context.Context, seen change.Millis, each func(func(*Open) error) error) error {
	var cells []Open
	owned := map[item]Candidate{}
	look := c.secondLook(c.Cell)
	look.Owned = func(kind Kind, of item, row []byte) {
		x := owned[of]
		x.Table, x.Key = of.Table, of.Key
		x.add(kind, row)
		owned[of] = x
	}
	look.Untold = func(o *Open) { cells = append(cells, *o) }
	if _, err := look.at(ctx, seen+proofMargin, each); err != nil {
		return fmt.Errorf("look again at cells without an owner: %w", err)
	}
	for some := range slices.Chunk(cells, c.batch()) {
		if err := c.unowned(ctx, some); err != nil {
			return err
		}
	}
	return c.owners(ctx, slices.Collect(maps.Values(owned)))
}

// owners settles the items that own a cell by now, without those that Verdict has received as not
// equal.
func (c *Checker) owners(ctx context.Context, owned []Candidate) error {
	known := func(x Candidate) bool { return c.notEqual[item{Table: x.Table, Key: x.Key}] }
	return c.Items(ctx, slices.DeleteFunc(owned, known))
}

func (c *Checker) batch() int {
	return cmp.Or(c.Batch, checkedAtOnce)
}

// Items settles some items.
func (c *Checker) Items(ctx context.Context, items []Candidate) error {
	return c.Each(ctx, func(f func([]Candidate) error) error { return f(items) })
}

// Each settles the items that each hands on, in any number of parts. Those that a look does not
// decide wait until they are a batch, through all parts.
func (c *Checker) Each(ctx context.Context, each func(f func([]Candidate) error) error) error {
	err := each(func(items []Candidate) error {
		for batch := range slices.Chunk(items, c.batch()) {
			if err := c.look(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = c.settle(ctx)
	}
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return nil
}

// look hands on the items about which a look decides, and settles the others once they are a batch.
func (c *Checker) look(ctx context.Context, batch []Candidate) error {
	verdicts, err := c.Look(ctx, batch)
	if err != nil {
		return err
	}
	for i := range verdicts {
		if !verdicts[i].Certain() {
			c.waiting = append(c.waiting, batch[i])
		} else if err := c.handOn(verdicts[i : i+1]); err != nil {
			return err
		}
	}
	if len(c.waiting) < c.batch() {
		return nil
	}
	return c.settle(ctx)
}

// settle settles the items that wait.
func (c *Checker) settle(ctx context.Context) error {
	items := c.waiting
	c.waiting = nil
	if len(items) == 0 {
		return nil
	}
	verdicts, err := c.Settle(ctx, items)
	if err != nil {
		return err
	}
	return c.handOn(verdicts)
}

func (c *Checker) handOn(verdicts []Verdict) error {
	for i := range verdicts {
		c.note(&verdicts[i])
		if err := c.Verdict(&verdicts[i]); err != nil {
			return err
		}
	}
	return nil
}

// note remembers an item that is not equal.
func (c *Checker) note(v *Verdict) {
	if c.notEqual == nil {
		c.notEqual = map[item]bool{}
	}
	if v.Status != Equal && v.Status != EqualByLog && v.Status != Kept && len(c.notEqual) < mostNotEqual {
		c.notEqual[item{Table: v.Table, Key: v.Key}] = true
	}
}
