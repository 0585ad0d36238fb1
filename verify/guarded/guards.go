package guarded

import (
	"bytes"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
)

// Guard is one guard of a row, or the pair of live and dead of one item.
type Guard struct {
	Item      Item
	pipeline  string // of another pipeline; "" for ours
	unknown   bool   // sealed with a secret that is not known here
	exclusive bool   // the row belongs to the item alone
	column    string // the guard's qualifier, where unknown
	Live      change.Version
	Dead      change.Version

	keys  change.Image // decoded on demand
	owned *transform.Owned
}

// Guards reads the guards of a row, and finds the items that may own a cell.
type Guards struct {
	target Target
	tables []Table
	byName map[string]int // index of a table, by its name
	plain  [][]byte       // how the values of guards in clear begin, by table
	row    []byte         // whose guards List holds
	List   []Guard

	evidence []Evidence // used again for each cell
}

// NewGuards returns the reader of the guards of a target.
func NewGuards(target Target, tables []Table) *Guards {
	g := &Guards{target: target, tables: tables, byName: map[string]int{}}
	for i := range tables {
		t := tables[i].Program.Table()
		g.byName[t.Source] = i
		g.plain = append(g.plain, guard.Append(nil, t.Pipeline, t.Source, nil))
	}
	return g
}

// names reports whether a guard of a row is known to name an item of ours.
func (g *Guards) names(cell *bigtable.Cell, row []byte, of Item) bool {
	if key, ok := bytes.CutPrefix(cell.Value, g.plain[of.Table]); ok {
		return string(key) == of.Key
	}
	found, err := g.target.GuardOf(cell.Value, row, cell.Qualifier)
	if err != nil || found.Unknown {
		return false
	}
	t := g.tables[of.Table].Program.Table()
	return found.Pipeline == t.Pipeline && found.Table == t.Source && string(found.Key) == of.Key
}

// OtherTable is the index of the tables of our pipeline that are not among the given ones.
const OtherTable = -1

// Read reads the guards of a row into List. It skips cells of the guard families that no replicator
// wrote.
func (g *Guards) Read(row *Row) {
	g.List, g.row = g.List[:0], row.Key
	for _, cells := range [][]bigtable.Cell{row.Live, row.Dead} {
		for i := range cells {
			g.add(row, &cells[i])
		}
	}
}

func (g *Guards) add(row *Row, cell *bigtable.Cell) {
	found, err := g.target.GuardOf(cell.Value, row.Key, cell.Qualifier)
	if err != nil {
		return
	}
	x := Guard{unknown: found.Unknown, exclusive: string(cell.Qualifier) == exclusiveQualifier}
	if x.unknown {
		x.column = string(cell.Qualifier)
	}
	if table, ok := g.byName[found.Table]; !ok {
		x.Item = Item{OtherTable, found.Table + "\x00" + string(found.Key)}
	} else {
		x.Item = Item{table, string(found.Key)}
	}
	if !found.Unknown && found.Pipeline != g.tables[0].Program.Table().Pipeline {
		x.pipeline = found.Pipeline
		if x.pipeline == "" {
			x.pipeline = "an unnamed pipeline"
		}
	}
	at := change.Version(cell.Time.UnixMilli())
	for i := range g.List {
		if y := &g.List[i]; y.Item == x.Item && y.pipeline == x.pipeline && y.exclusive == x.exclusive &&
			y.column == x.column {
			y.set(cell.Family, at)
			return
		}
	}
	x.set(cell.Family, at)
	g.List = append(g.List, x)
}

func (x *Guard) set(family string, at change.Version) {
	if family == transform.LiveFamily {
		x.Live = at
	} else {
		x.Dead = at
	}
}

// exclusiveQualifier is the qualifier of a guard in a row that one item owns.
const exclusiveQualifier = "i"

// Ours reports whether the guard is known to be our pipeline's.
func (x *Guard) Ours() bool { return !x.unknown && x.pipeline == "" }

// Presence is what all guards of a row say of one item.
type Presence struct {
	Guarded bool           // there is such a guard
	Live    change.Version // the newest version at which the row holds the item; 0: it does not
	Dead    change.Version // the newest version at which it left the row; 0: it did not
}

// Find returns what the guards of the row say of an item. An earlier mapping may have left a second
// guard of it.
func (g *Guards) Find(of Item) (p Presence) {
	for i := range g.List {
		if x := &g.List[i]; x.Ours() && x.Item == of {
			p = Presence{true, max(p.Live, x.Live), max(p.Dead, x.Dead)}
		}
	}
	return p
}

// Guards reports whether a guard of the row names the item. A guard that cannot be read may name
// it, unless its column belongs to another item.
func (g *Guards) Guards(of Item) bool {
	for i := range g.List {
		if x := &g.List[i]; x.Live > 0 && (x.unknown && g.mayName(x, of) || x.Ours() && x.Item == of) {
			return true
		}
	}
	return false
}

// mayName reports whether a guard that cannot be read may name an item: in rows of one item its
// column shows nothing.
func (g *Guards) mayName(x *Guard, of Item) bool {
	t := g.tables[of.Table].Program.Table()
	q := guard.Qualifier(t.Pipeline, t.Source, []byte(of.Key))
	return x.exclusive || x.column == string(q[:])
}

// Ownership is whether a cell belongs to an item.
type Ownership int

const (
	OwnedNot Ownership = iota
	OwnedMaybe
	OwnedYes
)

// Owns reports whether a cell of the row that was read belongs to the item of a guard of ours.
func (g *Guards) Owns(x *Guard, cell *bigtable.Cell) (Ownership, error) {
	if x.Item.Table == OtherTable {
		return OwnedMaybe, nil
	}
	if x.exclusive {
		return OwnedYes, nil
	}
	if x.owned == nil {
		if err := g.decodeKeys(x); err != nil {
			return OwnedNot, err
		}
		var err error
		if x.owned, err = g.tables[x.Item.Table].Program.Owned(x.keys, g.row); err != nil {
			return OwnedNot, err
		}
	}
	switch {
	case x.owned.Has(cell.Family, cell.Qualifier):
		return OwnedYes, nil
	case x.owned.MayHave(cell.Family):
		return OwnedMaybe, nil
	}
	return OwnedNot, nil
}

func (g *Guards) decodeKeys(x *Guard) (err error) {
	if x.keys == nil {
		var d change.Decoder // its own, because the keys are used while other guards are decoded
		x.keys, err = d.Image([]byte(x.Item.Key))
	}
	return err
}

// outlives returns whether a cell may remain without the item of the guard that owns it, and why.
// An emptied history may remain as a whole: the answer is about the column, not about the cell's
// own value.
func (g *Guards) outlives(x *Guard, row []byte, h *Held) (transform.Remaining, error) {
	if err := g.decodeKeys(x); err != nil {
		return transform.Remaining{}, err
	}
	return g.tables[x.Item.Table].outlives(transform.CellAlone{Row: row, Family: h.Family, Qualifier: h.Qualifier,
		Emptied: h.emptied, Keys: x.keys}), nil
}

// Keeps reports whether the guard of an absent item of ours may remain in the row, because the
// mapping keeps items that TTL deleted. The guard is the fact, not the cells: they may have aged
// away, or never have been there.
func (g *Guards) Keeps(of Item) (bool, error) {
	if of.Table == OtherTable || g.tables[of.Table].Outlives == nil {
		return false, nil
	}
	var d change.Decoder
	keys, err := d.Image([]byte(of.Key))
	if err != nil {
		return false, err
	}
	return g.tables[of.Table].Program.KeepsRow(keys, g.row), nil
}

// mayOutlive returns why a cell may remain whatever its owner is; "" where it may not.
func (g *Guards) mayOutlive(alone transform.CellAlone) string {
	for i := range g.tables {
		if r := g.tables[i].outlives(alone); r.Code == transform.Remains {
			return r.Why
		}
	}
	return ""
}

func (t *Table) outlives(a transform.CellAlone) transform.Remaining {
	if t.Outlives == nil {
		return transform.Remaining{}
	}
	return t.Outlives(a)
}
