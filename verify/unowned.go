package verify

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// settleRows looks again at rows with cells in columns that do not show to which item they belong. It reads all items
// that the row's guards name: a cell that none of them should have, twice in a row, is unproven. It may be a ghost, or
// foreign.
func (w *resyncing) settleRows(ctx context.Context, rows []string) error {
	var last map[string]Open
	for range 2 {
		r := rowSettling{w: w, judge: newJudge(&w.Settler), unowned: map[string]Open{}}
		if err := r.run(ctx, rows); err != nil {
			return err
		}
		if last != nil {
			for at := range r.unowned {
				if _, twice := last[at]; !twice {
					delete(r.unowned, at)
				}
			}
		}
		last = r.unowned
	}
	w.result.Unproven += int64(len(last))
	keys := make([]string, 0, len(last))
	for at := range last {
		keys = append(keys, at)
	}
	slices.Sort(keys)
	for _, at := range keys {
		if err := w.open.add(last[at]); err != nil {
			return err
		}
	}
	return nil
}

// rowSettling looks at rows once.
type rowSettling struct {
	w       *resyncing
	judge   *judge
	items   map[string][]*settling // by row
	unowned map[string]Open        // cells that no item of their row should have, by row, family and qualifier
}

func (r *rowSettling) run(ctx context.Context, rows []string) error {
	r.items = map[string][]*settling{}
	var all []*settling
	err := r.w.Target.Lookup(ctx, rows, func(row *Row) error {
		r.judge.guards.Read(row)
		for i := range r.judge.guards.List {
			g := &r.judge.guards.List[i]
			if !g.Ours() || g.Item.Table == guarded.OtherTable {
				continue
			}
			x := &settling{Candidate: &Candidate{Table: g.Item.Table, Key: g.Item.Key}}
			all, r.items[string(row.Key)] = append(all, x), append(r.items[string(row.Key)], x)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	answered, err := r.w.read(ctx, r.judge, all, true)
	if err != nil {
		return err
	}
	if err := r.w.Prove(ctx, answered+proofMargin); err != nil {
		return fmt.Errorf("prove what is applied: %w", err)
	}
	return r.w.Target.Lookup(ctx, rows, r.compare)
}

// compare compares a row with all its items.
func (r *rowSettling) compare(row *Row) error {
	var items []guarded.Wanted
	for _, x := range r.items[string(row.Key)] {
		if cells, ok := x.want.rows[string(row.Key)]; ok {
			items = append(items, guarded.Wanted{Item: item{Table: x.Table, Key: x.Key}, Cells: cells})
		}
	}
	c := guarded.NewComparison(r.judge.guards, r.judge.families, r.w.Now(), change.Version(r.w.Now()+r.w.Lead), r)
	return c.Compare(bytes.Clone(row.Key), items, row)
}

func (r *rowSettling) Candidate(Kind, item, []byte) error          { return nil }
func (r *rowSettling) Kept([]byte, *guarded.Held)                  {}
func (r *rowSettling) Foreign([]byte, *guarded.Held, string) error { return nil }

func (r *rowSettling) Unproven(kind Kind, row []byte, h *guarded.Held) error {
	if kind == Unowned {
		r.unowned[fmt.Sprintf("%s\x00%s\x00%s", row, h.Family, h.Qualifier)] = openCell(kind, row, h, "")
	}
	return nil
}
