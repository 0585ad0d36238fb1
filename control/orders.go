package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
)

// TableOrder is a resync of a whole table, asked for through its log.
type TableOrder struct {
	Log  *Log
	Gaps []string // ids of the gaps that it heals; none where the table was named
	ID   string   // of the order; before Send only where a pending one heals the gaps already
}

// OrderOfTable returns the order for a table that was named. logs has its log, if there is one.
func OrderOfTable(logs []*Log, table string) ([]*TableOrder, error) {
	if len(logs) == 0 {
		return nil, failure.With(failure.Unready, "`replicator run` makes it when it starts",
			fmt.Errorf("table %s has no log yet", table))
	}
	return []*TableOrder{{Log: logs[0]}}, nil
}

// OrdersOfGaps returns an order for each table with gaps of which Bigtable differs: with any of
// the given ids, if there are ids.
func OrdersOfGaps(logs []*Log, ids []string) (orders []*TableOrder) {
	for _, l := range logs {
		if gaps, pending := gapsToHeal(l.State, ids); len(gaps) > 0 {
			orders = append(orders, &TableOrder{Log: l, Gaps: gaps, ID: pending})
		}
	}
	return orders
}

// gapsToHeal returns the ids of the gaps of which Bigtable differs; of the given ones if there are
// any. pending is the pending resync if it heals all of them: another order would begin it again.
func gapsToHeal(s *checkpoint.State, ids []string) (gaps []string, pending string) {
	wanted := func(g *checkpoint.Gap) bool { return len(ids) == 0 || slices.Contains(ids, g.ID()) }
	for _, g := range s.DifferingGaps() {
		if wanted(g) {
			gaps = append(gaps, g.ID())
		}
	}
	if s.Resync != nil && !slices.ContainsFunc(s.GapsToHeal(), wanted) {
		pending = s.Resync.ID
	}
	return gaps, pending
}

// Send appends the order to the table's log, unless a pending one has the same effect.
func (o *TableOrder) Send(ctx context.Context) (err error) {
	if o.ID != "" {
		return nil
	}
	what := "repair"
	if len(o.Gaps) > 0 {
		what = "heal gaps"
	}
	o.ID, err = o.Log.Resync(ctx, what, o.Gaps)
	return err
}
