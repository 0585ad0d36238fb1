package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/guarded"
	"github.com/tailrace-cdc/replicator/verify/openlist"
)

// settleRows looks again at rows with cells in columns that do not show to which item they belong. It reads all items
// that the row's guards name. It returns the cells that none of them should have, twice in a row: they are unproven,
// because each may be a ghost, or foreign.
func (s *Settler) settleRows(ctx context.Context, rows []string) ([]Open, error) {
	var last map[string]Open
	for range 2 {
		r := rowSettling{s: s, judge: newJudge(s), unowned: map[string]Open{}}
		if err := r.run(ctx, rows); err != nil {
			return nil, err
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
	var open []Open
	for _, at := range slices.Sorted(maps.Keys(last)) {
		open = append(open, last[at])
	}
	return open, nil
}

// rowSettling looks at rows once.
type rowSettling struct {
	s       *Settler
	judge   *judge
	items   map[string][]*settling // by row
	unowned map[string]Open        // cells that no item of their row should have, by row, family and qualifier
}

func (r *rowSettling) run(ctx context.Context, rows []string) error {
	r.items = map[string][]*settling{}
	var all []*settling
	err := r.s.Target.Lookup(ctx, rows, func(row *Row) error {
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
	answered, err := r.s.read(ctx, r.judge, all, true)
	if err != nil {
		return err
	}
	if err := r.s.Prove(ctx, answered+proofMargin); err != nil {
		return fmt.Errorf("prove what is applied: %w", err)
	}
	return r.s.Target.Lookup(ctx, rows, r.compare)
}

// compare compares a row with all its items.
func (r *rowSettling) compare(row *Row) error {
	var items []guarded.Wanted
	for _, x := range r.items[string(row.Key)] {
		if cells, ok := x.want.rows[string(row.Key)]; ok {
			items = append(items, guarded.Wanted{Item: item{Table: x.Table, Key: x.Key}, Cells: cells})
		}
	}
	c := guarded.NewComparison(r.judge.guards, r.judge.families, r.s.Now(), change.Version(r.s.Now()+r.s.Lead), r)
	return c.Compare(bytes.Clone(row.Key), items, row)
}

func (r *rowSettling) Candidate(Kind, item, []byte) error          { return nil }
func (r *rowSettling) Kept([]byte, *guarded.Held)                  {}
func (r *rowSettling) Foreign([]byte, *guarded.Held, string) error { return nil }

func (r *rowSettling) Unproven(kind Kind, row []byte, h *guarded.Held) error {
	if kind == Unowned {
		o := openlist.OfCell(kind, row, h, "")
		o.Rule = strings.Join(r.judge.guards.RulesOf(h.Cell), " | ")
		r.unowned[fmt.Sprintf("%s\x00%s\x00%s", row, h.Family, h.Qualifier)] = o
	}
	return nil
}
