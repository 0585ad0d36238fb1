package verify

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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

// Findings settles all candidates of a full comparison. Of the foreign and sealed cells it hands on the first million.
func (c *Checker) Findings(ctx context.Context, found *Findings) error {
	if err := found.open.each(c.Cell); err != nil {
		return err
	}
	n := c.batch()
	if err := found.Candidates(n, func(batch []Candidate) error { return c.settle(ctx, batch) }); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	err := found.unownedRows(n, func(rows []string) error {
		cells, err := c.settleRows(ctx, rows)
		for i := range cells {
			err = errors.Join(err, c.Cell(&cells[i]))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("settle rows: %w", err)
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

// each calls f with what is in the file.
func (l *openList) each(f func(*Open) error) error {
	if err := l.to.Flush(); err != nil {
		return fmt.Errorf("write list of differences: %w", err)
	}
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("open list of differences: %w", err)
	}
	defer file.Close()
	for dec := json.NewDecoder(bufio.NewReader(file)); ; {
		var o Open
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read list of differences: %w", err)
		}
		if err := f(&o); err != nil {
			return err
		}
	}
}
