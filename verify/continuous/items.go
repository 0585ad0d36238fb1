package continuous

import (
	"context"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// stepItems compares one page of items.
func (v *Verifier) stepItems(ctx context.Context) error {
	page, err := v.scan(ctx)
	if err != nil {
		return fmt.Errorf("scan %s: %w", v.table, err)
	}
	defer page.Free()
	if err := v.compareItems(ctx, page.Items); err != nil {
		return fmt.Errorf("compare items of %s: %w", v.table, err)
	}
	v.after = page.After
	v.mu.Lock()
	defer v.mu.Unlock()
	d := &v.items
	d.Compared, d.spent = d.Compared+int64(len(page.Items)), d.spent+page.Units
	if !page.Done {
		return nil
	}
	if d.Segment++; d.Segment == d.Total {
		d.finish()
		d.Total, v.more = v.o.Segments, 0
	}
	return nil
}

// scan reads the next page within the budget, of as many items as a second allows.
func (v *Verifier) scan(ctx context.Context) (*source.ItemPage, error) {
	v.mu.Lock()
	segment, total := v.items.Segment, v.items.Total
	v.mu.Unlock()
	limit := v.o.Budget.PageLimit(v.unitsEach)
	estimate := float64(max(limit, 1)) * v.unitsEach
	if err := v.o.Budget.Take(ctx, estimate); err != nil {
		return nil, err
	}
	page, err := v.o.Source.ScanPage(ctx, source.ScanRequest{
		Table: v.table, Segment: segment, Total: total, After: v.after, Limit: limit, Eventual: true,
	})
	if err != nil {
		v.o.Budget.Settle(estimate, 0)
		return nil, err
	}
	v.o.Budget.Settle(estimate, page.Units)
	if n := len(page.Items); n > 0 && page.Units > 0 {
		v.unitsEach = page.Units / float64(n)
	}
	return page, nil
}

// compareItems compares items with the rows that they should have. In rows of several items the
// others may not be in the page: what belongs to them is left to the other direction.
func (v *Verifier) compareItems(ctx context.Context, items [][]byte) error {
	wanted := make(map[string][]guarded.Wanted, len(items))
	for _, raw := range items {
		rows, err := v.projector.Rows(raw)
		of := guarded.Item{Key: string(v.projector.Key())}
		if guarded.IsRefusal(err) {
			v.candidate(verify.Refusal, of, nil)
			continue
		}
		if err != nil {
			return err
		}
		for i := range rows {
			w := guarded.Wanted{Item: of}
			if err := w.Decode(slices.Clone(v.projector.Encode(&rows[i]))); err != nil {
				return err
			}
			wanted[string(rows[i].Key)] = append(wanted[string(rows[i].Key)], w)
		}
	}
	keys := make([]string, 0, len(wanted))
	for key := range wanted {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return v.compareKeys(ctx, keys, wanted)
}

// compareKeys compares rows with the items that should be in them.
func (v *Verifier) compareKeys(ctx context.Context, keys []string, wanted map[string][]guarded.Wanted) error {
	compare := v.compare(false)
	next := 0
	one := func(row *verify.Row) error {
		key := keys[next]
		next++
		v.found.items = wanted[key]
		return compare.Compare([]byte(key), wanted[key], row)
	}
	missing := func(until string, all bool) error {
		for next < len(keys) && (all || keys[next] < until) {
			if err := one(nil); err != nil {
				return err
			}
		}
		return nil
	}
	err := v.o.Target.Lookup(ctx, keys, func(row *verify.Row) error {
		if err := missing(string(row.Key), false); err != nil {
			return err
		}
		return one(row)
	})
	if err != nil {
		return err
	}
	return missing("", true)
}
