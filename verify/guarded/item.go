package guarded

import "github.com/tailrace-cdc/replicator/change"

// ItemWant is what a row should hold of an item.
type ItemWant struct {
	Wanted bool // the item should be in the row
	Cells  []WantedCell
	Absent bool // there is no such item
}

// ItemRow is how a row compares with what it should hold of one item.
type ItemRow struct {
	Presence
	Future  change.Version // the version of its guard if that is in the future
	NoGuard bool           // the row should hold the item, and no guard can say that it does
	Stale   bool           // a guard says that the row holds the item, which should not be in it
	Kept    bool           // the same, and the mapping keeps the item because it expired
	Visible bool           // a reader sees a cell that may be the item's and that the item should not have
	Cells   []ItemCell     // the wanted ones, then those of the row that are or may have been the item's
	Others  int            // cells of the row that are not known to be the item's

	absent bool
}

// ItemCell is how a cell compares that an item should have in a row, or that the row holds.
type ItemCell struct {
	State Outcome
	Want  int // index in ItemWant.Cells; -1: the item should not have it
	Have  int // index in Cells.List; -1: the row lacks it
}

// Differs reports whether the row is not as it should be. Cells that other items may write, too,
// and cells that may remain do not count.
func (r *ItemRow) Differs() bool {
	if r.Future > 0 || r.NoGuard || r.Stale {
		return true
	}
	for i := range r.Cells {
		switch r.Cells[i].State {
		case IsMissing, IsOther, IsExtra:
			return true
		case IsKeptWhileAbsent:
			if !r.absent {
				return true
			}
		default:
		}
	}
	return false
}

// CompareItem compares what a row holds of one item with what it should hold of it. The guards are
// the guards of the row; row is nil where the target lacks it, and latest is the version above
// which a guard is in the future. Cells of other items do not count, so that a busy neighbour in
// the row does not keep the item from being compared.
//
// Rule 14: this is the one comparer of an item with a row. What is settled and what is explained
// are made from its answer.
func (g *Guards) CompareItem(
	c *Cells, row *Row, of Item, want ItemWant, latest change.Version,
) (r ItemRow, err error) {
	c.Load(row)
	r.Presence, r.absent = g.Find(of), want.Absent
	if r.inFuture(latest) {
		r.Future = max(r.Live, r.Dead)
	}
	known := make([]bool, len(c.List))
	for i := range want.Cells {
		x, err := g.compareWanted(c, of, want.Cells, i, r.Live)
		if err != nil {
			return r, err
		}
		if r.Cells = append(r.Cells, x); x.Have >= 0 {
			known[x.Have] = true
		}
	}
	r.NoGuard = row != nil && g.lacks(of, len(want.Cells))
	if r.Live > 0 && !want.Wanted {
		keeps, err := g.Keeps(of)
		if err != nil {
			return r, err
		}
		r.Kept, r.Stale = keeps && want.Absent, !keeps || !want.Absent
	}
	for i := range c.List {
		if known[i] {
			continue
		}
		state, visible, err := g.stateOfRest(c, &c.List[i], of, row.Key, r.Live > 0)
		if err != nil {
			return r, err
		}
		if r.Visible = r.Visible || visible; state == IsOfOthers {
			r.Others++
			continue
		}
		r.Cells = append(r.Cells, ItemCell{State: state, Want: -1, Have: i})
	}
	return r, nil
}

// inFuture reports whether a guard of the item is above latest.
func (p *Presence) inFuture(latest change.Version) bool { return max(p.Live, p.Dead) > latest }

// lacks reports whether the row that was read should hold cells of an item and has no guard that
// may say that it does.
func (g *Guards) lacks(of Item, cells int) bool { return cells > 0 && !g.Guards(of) }

// compareWanted compares one cell that the item should have.
func (g *Guards) compareWanted(
	c *Cells, of Item, cells []WantedCell, i int, written change.Version,
) (ItemCell, error) {
	x := ItemCell{Want: i, Have: -1}
	result, at := c.Compare(&cells[i], written)
	if x.State = result; result == IsEqual || result == IsOther {
		x.Have = at
	}
	if result != IsOther {
		return x, nil
	}
	c.Explain(at)
	shared, err := g.mayBeShared(of, &c.List[at])
	if shared {
		x.State = IsShared
	}
	return x, err
}

// mayBeShared reports whether other items may write a cell of an item too, which the mapping
// acknowledges.
func (g *Guards) mayBeShared(of Item, h *Held) (bool, error) {
	if !g.tables[of.Table].Program.SharesCells() {
		return false, nil
	}
	for i := range g.List {
		x := &g.List[i]
		if !x.Ours() || x.Item == of {
			continue
		}
		if owned, err := g.Owns(x, h.Cell); err != nil || owned != OwnedNot {
			return owned != OwnedNot, err
		}
	}
	return false, nil
}

// stateOfRest returns the state of a cell that the item should not have, and whether a reader gets
// it as a cell that may be the item's. live means that a guard gives the row to the item.
func (g *Guards) stateOfRest(
	c *Cells, h *Held, of Item, row []byte, live bool,
) (state Outcome, visible bool, err error) {
	if h.explained {
		return IsOlder, false, nil
	}
	s, err := g.StandingForItem(of, row, h)
	if err != nil {
		return IsOfOthers, false, err
	}
	tooOld := c.Expired(h)
	visible = !tooOld && s.Code != CellForeign
	switch s.Code {
	case CellKept, CellKeptWhileAbsent, CellOwned:
	default: // not known to be the item's
		return IsOfOthers, visible, nil
	}
	switch {
	case tooOld:
		state = IsTooOld
	case s.Code == CellKept:
		state = IsKept
	case s.Code == CellKeptWhileAbsent && live:
		state = IsKeptWhileAbsent
	default:
		state = IsExtra
	}
	return state, visible, nil
}
