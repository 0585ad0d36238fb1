package comparison

import (
	"context"
	"fmt"
	"os"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/verify"
)

// Project calls emit with the records of the items of a file, each with the number of its row's
// range, and at last with how many items there are, for range 0. A value is valid until emit
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
	counted := counts{Table: table, At: c.plan.Tables[table].Export.Time}
	var value []byte
	send := func(r verify.Record) {
		if n := c.plan.RangeOf(r.Row); !c.stored[n] {
			value = appendRecord(value[:0], r)
			emit(n, value)
		}
	}
	err = e.ReadFile(ctx, number, 0, func(l export.Line) error {
		refused, err := projection.Records(table, l.Item, send)
		if refused {
			counted.Refused++
		}
		counted.Items++
		return err
	})
	if err != nil {
		return source.Explain(fmt.Errorf("file %d of %s: %w", number, c.plan.Tables[table].Table, err))
	}
	if value, err = counted.append(value[:0]); err != nil || c.stored[0] {
		return err
	}
	emit(0, value)
	return nil
}

// memory bounds the records of a range that are sorted at once. More are sorted on disk.
const memory = 32 << 20

// Compare compares the records of a range, as Project has emitted them, with the rows of the range,
// and stores what it finds. next returns false at the end.
func (c *Comparison) Compare(ctx context.Context, n int, next func(*[]byte) bool) (err error) {
	if c.stored[n] {
		return nil
	}
	dir, err := os.MkdirTemp(c.place.Scratch, "replicator-compare-")
	if err != nil {
		return fmt.Errorf("make scratch: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var counted []counts
	records := func(add func(verify.Record) error) error {
		for value := []byte(nil); next(&value); {
			if len(value) == 0 {
				continue // that there is such a range
			}
			if isCounts(value) {
				x, err := readCounts(value)
				if err != nil {
					return err
				}
				counted = append(counted, x)
				continue
			}
			r, err := readRecord(value)
			if err != nil {
				return err
			}
			if err := add(r); err != nil {
				return err
			}
		}
		return nil
	}
	start, end := c.plan.Bounds(n)
	o := verify.FullOptions{
		Dir: dir, Identity: c.plan.ID, Memory: memory, Lead: c.plan.Lead, Now: func() change.Millis { return c.plan.Now },
	}
	found, err := verify.CompareRange(ctx, o, c.tables, c.target.Range(start, end), records)
	if err != nil {
		return bigtable.Explain(fmt.Errorf("compare range %d: %w", n, err))
	}
	defer func() { _ = found.Remove() }()
	for _, x := range counted {
		found.Counts.Counted(x.Items, x.Refused, x.At)
		found.ByTable[x.Table].Counted(x.Items, x.Refused, x.At)
	}
	return c.folder.StoreRange(ctx, c.plan, n, found.Encode)
}
