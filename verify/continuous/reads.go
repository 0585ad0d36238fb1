package continuous

import (
	"context"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// minUnits is what reading an item costs at least, with eventual consistency.
const minUnits = 0.5

// readStrongly reads items for the settler within the budget.
func (v *Verifier) readStrongly(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
	return v.readItems(ctx, 2*minUnits, keys, func(ctx context.Context) (*source.ItemBatch, error) {
		return v.o.Source.ReadItems(ctx, table, keys)
	})
}

// readEventually reads items for a comparison within the budget.
func (v *Verifier) readEventually(ctx context.Context, keys [][]byte) (*source.ItemBatch, error) {
	return v.readItems(ctx, minUnits, keys, func(ctx context.Context) (*source.ItemBatch, error) {
		return v.o.Source.ReadItemsEventually(ctx, v.table, keys)
	})
}

func (v *Verifier) readItems(
	ctx context.Context, each float64, keys [][]byte, read func(context.Context) (*source.ItemBatch, error),
) (*source.ItemBatch, error) {
	estimate := each * float64(len(keys))
	if err := v.o.Budget.Take(ctx, estimate); err != nil {
		return nil, err
	}
	batch, err := read(ctx)
	if err != nil {
		v.o.Budget.Settle(estimate, 0)
		return nil, err
	}
	v.o.Budget.Settle(estimate, batch.Units)
	return batch, nil
}

// compare returns the comparison for a page. all: every item of its rows is known.
func (v *Verifier) compare(all bool) *guarded.Comparison {
	if v.comparison == nil {
		f := guarded.FamiliesOf(v.o.Tables)
		v.comparison = guarded.NewComparison(guarded.NewGuards(v.o.Target, v.o.Tables), f, 0, 0, v.found)
	}
	v.comparison.At(v.o.Now(), change.Version(v.o.Now()+v.o.Lead()))
	v.found.all = all
	return v.comparison
}
