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
)

// cellPlace is where a cell stands, whatever its time.
type cellPlace struct{ row, family, qualifier string }

func placeOf(o *Open) cellPlace { return cellPlace{string(o.Row), o.Family, string(o.Qualifier)} }

// settleCells looks again at cells in columns that do not show to which item they belong. It reads
// all items that the guards of their rows name. It returns the cells that none of them should have,
// twice in a row: they are unproven, because each may be a ghost, or foreign, where no guard can
// own them any more. owned are the items that one of the cells belongs to by now, because they have
// come meanwhile: they are to be settled.
func (s *Settler) settleCells(ctx context.Context, cells []Open) (open []Open, owned []Candidate, err error) {
	var last map[cellPlace]Open
	items := map[item]Candidate{}
	for range 2 {
		r := cellSettling{s: s, judge: newJudge(s), picked: map[cellPlace]bool{}, left: map[cellPlace]Open{}, owned: items}
		for i := range cells {
			if at := placeOf(&cells[i]); last == nil || hasPlace(last, at) {
				r.picked[at] = true
			}
		}
		if err := r.run(ctx); err != nil {
			return nil, nil, err
		}
		last = r.left
	}
	for _, o := range sortedOpen(last) {
		if o.Kind != "" { // else an item owns it, whose verdict tells the rest
			open = append(open, o)
		}
	}
	for _, c := range items {
		owned = append(owned, c)
	}
	slices.SortFunc(owned, func(a, b Candidate) int { return strings.Compare(a.Key, b.Key) })
	return open, owned, nil
}

func hasPlace(m map[cellPlace]Open, at cellPlace) bool { _, ok := m[at]; return ok }

// sortedOpen returns cells in the order of their places.
func sortedOpen(m map[cellPlace]Open) (all []Open) {
	for _, o := range m {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b Open) int { return comparePlaces(placeOf(&a), placeOf(&b)) })
	return all
}

func comparePlaces(a, b cellPlace) int {
	for _, c := range []int{strings.Compare(a.row, b.row), strings.Compare(a.family, b.family)} {
		if c != 0 {
			return c
		}
	}
	return strings.Compare(a.qualifier, b.qualifier)
}

// cellSettling looks at cells once.
type cellSettling struct {
	s      *Settler
	judge  *judge
	picked map[cellPlace]bool
	items  map[string][]*settling // by row
	left   map[cellPlace]Open     // of picked: those that no item should have; of kind "" where an item owns them
	owned  map[item]Candidate
}

func (r *cellSettling) run(ctx context.Context) error {
	if len(r.picked) == 0 {
		return nil
	}
	keys := map[string]bool{}
	for at := range r.picked {
		keys[at.row] = true
	}
	rows := slices.Sorted(maps.Keys(keys))
	r.items = map[string][]*settling{}
	var all []*settling
	err := r.s.Target.Lookup(ctx, rows, func(row *Row) error {
		r.judge.guards.Read(row)
		for i := range r.judge.guards.List {
			g := &r.judge.guards.List[i]
			if !r.judge.guards.Compared(g) {
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
	return r.s.Target.Lookup(ctx, rows, r.look)
}

// look looks at the cells of a row that none of its items explains.
func (r *cellSettling) look(row *Row) error {
	var items []guarded.Wanted
	for _, x := range r.items[string(row.Key)] {
		if cells, ok := x.want.rows[string(row.Key)]; ok {
			items = append(items, guarded.Wanted{Item: item{Table: x.Table, Key: x.Key}, Cells: cells})
		}
	}
	now := r.s.Now()
	c := guarded.NewComparison(r.judge.guards, r.judge.families, now, change.Version(now+r.s.Lead), nil)
	return c.Rest(items, row, func(h *guarded.Held, s guarded.Standing) error {
		o := openOfCell("", row.Key, h, s.Pipeline)
		if !r.picked[placeOf(&o)] {
			return nil
		}
		switch s.Code {
		case guarded.CellOwned, guarded.CellKeptWhileAbsent:
			of := s.Owner.Item
			r.owned[of] = Candidate{Table: of.Table, Key: of.Key, Rows: [][]byte{bytes.Clone(row.Key)},
				Kinds: []Kind{ExtraCell}}
		case guarded.CellMaybe:
			o.Kind = Unowned
			o.Rule, o.Rules = r.judge.guards.RulesOf(h.Cell)
		case guarded.CellSealed:
			o.Kind = Sealed
		case guarded.CellForeign, guarded.CellOfOtherPipeline:
			o.Kind = Foreign
		default:
			return nil // it may remain, or belongs to a table that is not compared
		}
		r.left[placeOf(&o)] = o
		return nil
	})
}
