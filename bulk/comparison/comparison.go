package comparison

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/verify"
)

// Project calls emit with the records of the items of a file, each with the number of its row's
// range, and at last, for each range, with how many there were. A value is valid until emit
// returns. Ranges that have findings get nothing.
func (c *Comparison) Project(ctx context.Context, file int, emit func(n int, value []byte)) error {
	table, number := c.plan.FileOf(file)
	if table < 0 {
		return fmt.Errorf("the plan has %d files, and no number %d", c.plan.Files(), file)
	}
	if len(c.stored) == c.plan.Ranges() {
		return nil
	}
	e, err := c.export(ctx, table)
	if err != nil {
		return err
	}
	projection := verify.NewProjection(c.tables)
	whole := counts{File: file, At: c.plan.Tables[table].Export.Time}
	records := make([]int64, c.plan.Ranges())
	var value []byte
	send := func(r verify.Record) {
		if n := c.plan.RangeOf(r.Row); !c.stored[n] {
			value = appendRecord(value[:0], r)
			emit(n, value)
			records[n]++
		}
	}
	err = e.ReadFile(ctx, number, 0, func(l export.Line) error {
		refused, err := projection.Records(table, l.Item, send)
		if refused {
			whole.Refused++
		}
		whole.Items++
		return err
	})
	if err != nil {
		return source.Explain(fmt.Errorf("file %d of %s: %w", number, c.plan.Tables[table].Table, err))
	}
	for n := range records {
		if c.stored[n] {
			continue
		}
		of := counts{File: file}
		if n == 0 {
			of = whole
		}
		of.Records = records[n]
		if value, err = of.append(value[:0]); err != nil {
			return err
		}
		emit(n, value)
	}
	return nil
}

// memory bounds the records of a range that are sorted at once. More are sorted on disk.
const memory = 32 << 20

// Compare compares the records of a range, as Project has emitted them, with the rows of the range,
// and stores what it finds. next returns false at the end.
//
// Rule 15: it stores nothing unless each file has counted its records for the range, and so many
// came. A process that was started later may have left records out, because the range has findings
// by now: these stay.
func (c *Comparison) Compare(ctx context.Context, n int, next func(*[]byte) bool) (err error) {
	if c.stored[n] {
		return nil
	}
	dir, err := os.MkdirTemp(c.place.Scratch, "replicator-compare-")
	if err != nil {
		return fmt.Errorf("make scratch: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	got := received{files: map[int]counts{}}
	start, end := c.plan.Bounds(n)
	o := verify.FullOptions{
		Dir: dir, Identity: c.plan.ID, Memory: memory, Lead: c.plan.Lead, Now: func() change.Millis { return c.plan.Now },
	}
	found, err := verify.CompareRange(ctx, o, c.tables, c.target.Range(start, end),
		func(add func(verify.Record) error) error { return got.read(next, c.plan.Files(), add) })
	if errors.Is(err, errIncomplete) {
		if stored, listed := c.folder.Stored(ctx, c.plan); listed == nil && stored[n] {
			return nil
		}
	}
	if err != nil {
		return bigtable.Explain(fmt.Errorf("compare range %d: %w", n, err))
	}
	defer func() { _ = found.Remove() }()
	for file, x := range got.files {
		if n != 0 {
			break // the items are counted once
		}
		table, _ := c.plan.FileOf(file)
		found.Counts.Counted(x.Items, x.Refused, x.At)
		found.ByTable[table].Counted(x.Items, x.Refused, x.At)
	}
	return c.folder.StoreRange(ctx, c.plan, n, found.Encode)
}
