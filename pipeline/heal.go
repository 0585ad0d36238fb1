package pipeline

import (
	"context"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/transform"
)

// sharing returns the programs of the other tables with the same target.
func (t *table) sharing() ([]*transform.Program, error) {
	if t.Sharing == nil {
		return nil, nil
	}
	return t.Sharing(t.info)
}

// foreign returns what deletes cells of the target that belong to no item.
func (t *table) foreign(l *life.Life) *resync.ForeignDeleter {
	programs := func() ([]*transform.Program, error) {
		sharing, err := t.sharing()
		return append([]*transform.Program{t.row.Program}, sharing...), err
	}
	return &resync.ForeignDeleter{
		Life: l, Client: t.bigtable, Programs: programs,
		MayDelete: func(ctx context.Context) error { return t.mayDelete(ctx, l) },
	}
}

// orderTime is the part of an order's id that distinguishes it from others.
func orderTime(at change.Millis) string { return at.Time().UTC().Format("20060102T150405.000") }
