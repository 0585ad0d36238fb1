package plants

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/test/sim/cells"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// Plant is one difference, and what it must show.
type Plant struct {
	What string
	Row  string
	// Item is the item that every comparer must name, nil for none; Cell the cell of which it must
	// say that it is foreign, or, with Unowned, that its owner cannot be told. Without both the
	// plant changes no verdict.
	Item    *guarded.Item
	Cell    string
	Unowned bool
	Visible bool // a plain reader sees it

	future change.Version // the version of a guard in the future
	undo   func()         // as repair --delete-foreign does
}

// Name is what a comparer must name; "" for nothing.
func (p *Plant) Name() string {
	switch {
	case p.Item != nil:
		return ItemName(*p.Item)
	case p.Cell != "" && p.Unowned:
		return "unowned " + p.Cell
	case p.Cell != "":
		return "foreign " + p.Cell
	}
	return ""
}

// ItemName names an item in what a comparer finds.
func ItemName(of guarded.Item) string { return "item " + sourceOf(of.Table) + " " + of.Key }

// CellName names a cell in what a comparer finds.
func CellName(row, family, qualifier string) string { return row + " " + family + ":" + qualifier }

// Plant plants one difference; nil where the kind that it draws has no place.
func (w *World) Plant() *Plant {
	kinds := []func() *Plant{w.lose, w.lose, w.alter, w.alter, w.haunt, w.haunt, w.haunt, w.foreign, w.foreign, w.unguard,
		w.future, w.stale, w.unsecret}
	return kinds[w.rnd.IntN(len(kinds))]()
}

// Mend takes the plant away: an item is resynced, a cell without an owner deleted.
func (w *World) Mend(p *Plant) error {
	if p.undo != nil {
		p.undo()
	}
	if p.Item == nil {
		return nil
	}
	return w.Repair(*p.Item, append(w.rowsEver(*p.Item), []byte(p.Row)), p.future)
}

// Known returns every item that ever was, or that a guard of a row names, with the rows in which it
// may be: those that it was ever in, and that row.
func (w *World) Known(row string) map[guarded.Item][][]byte {
	all := map[guarded.Item][][]byte{}
	for of := range w.Ever {
		all[of] = w.rowsEver(of)
	}
	for _, g := range w.guards(row) {
		if _, ever := all[g.of]; !ever {
			all[g.of] = nil
		}
	}
	for of, rows := range all {
		if row != "" && !slices.ContainsFunc(rows, func(r []byte) bool { return string(r) == row }) {
			all[of] = append(rows, []byte(row))
		}
	}
	return all
}

// wanted lists the columns of the items, with their owners, in order.
func (w *World) wanted() (all []column, owner map[column]guarded.Item) {
	owner = map[column]guarded.Item{}
	for _, of := range w.existing() {
		rows, err := w.project(of, w.Items[of])
		if err != nil {
			panic(err) // the history has shown that the mapping takes it
		}
		for i := range rows {
			for _, c := range rows[i].Cells {
				at := column{string(rows[i].Key), c.Family, string(c.Qualifier)}
				all, owner[at] = append(all, at), of
			}
		}
	}
	return all, owner
}

func (w *World) existing() []guarded.Item {
	return slices.SortedFunc(maps.Keys(w.Items), compareItems)
}

func compareItems(a, b guarded.Item) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), strings.Compare(a.Key, b.Key))
}

// newest returns the newest cell of a column; nil without one.
func (w *World) newest(at column) (c *cells.Cell) {
	row := w.Bigtable.Rows[at.row]
	for i := 0; row != nil && i < len(row.Cells); i++ {
		x := &row.Cells[i]
		if x.Family == at.family && x.Qualifier == at.qualifier && (c == nil || x.At > c.At) {
			c = x
		}
	}
	return c
}

func (w *World) set(row string, c cells.Cell) {
	r := w.Bigtable.Row(row)
	r.Cells = append(r.Cells, c)
}

func (w *World) remove(row string, match func(c *cells.Cell) bool) {
	r := w.Bigtable.Row(row)
	r.Cells = slices.DeleteFunc(r.Cells, func(c cells.Cell) bool { return match(&c) })
}

func (at column) is(c *cells.Cell) bool { return c.Family == at.family && c.Qualifier == at.qualifier }

// lose deletes a cell that an item should have.
func (w *World) lose() *Plant {
	at, of, ok := w.pickWanted()
	if !ok {
		return nil
	}
	w.remove(at.row, at.is)
	return &Plant{What: "a cell less: " + at.String(), Row: at.row, Item: &of,
		Visible: at.family != "a"} // to a plain comparison, which cannot tell how old a cell without one is
}

func (at column) String() string { return CellName(at.row, at.family, at.qualifier) }

// alter changes the newest value of a cell that an item should have.
func (w *World) alter() *Plant {
	at, of, ok := w.pickWanted()
	if !ok {
		return nil
	}
	w.newest(at).Value += "?"
	return &Plant{What: "another value: " + at.String(), Row: at.row, Item: &of, Visible: true}
}

// pickWanted picks a cell that an item should have and that cannot have aged away.
func (w *World) pickWanted() (at column, of guarded.Item, ok bool) {
	all, owner := w.wanted()
	all = slices.DeleteFunc(all, func(at column) bool {
		c := w.newest(at)
		return c == nil || at.family == "a" && c.At < w.now-hour/2
	})
	if len(all) == 0 {
		return at, of, false
	}
	at = all[w.rnd.IntN(len(all))]
	return at, owner[at], true
}

// presence is a guard of an item in a row.
type presence struct {
	cell  cells.Cell
	of    guarded.Item
	live  bool
	alone bool // the row belongs to the item alone
}

// guards lists the guards of a row: those that name an item of the tables.
func (w *World) guards(row string) (all []presence) {
	r := w.Bigtable.Rows[row]
	for i := 0; r != nil && i < len(r.Cells); i++ {
		c := r.Cells[i]
		if c.Family != transform.LiveFamily && c.Family != transform.DeadFamily {
			continue
		}
		g, err := w.GuardOf([]byte(c.Value), []byte(row), []byte(c.Qualifier))
		if err != nil || g.Unknown || int(g.Table[0]-'S') >= len(w.Tables) {
			continue
		}
		all = append(all, presence{cell: c, of: guarded.Item{Table: int(g.Table[0] - 'S'), Key: string(g.Key)},
			live: c.Family == transform.LiveFamily, alone: c.Qualifier == guard.Exclusive})
	}
	return all
}

// ofRetired reports whether a row has a guard of a table that is not compared.
func (w *World) ofRetired(row string) bool {
	r := w.Bigtable.Rows[row]
	named := func(c cells.Cell) bool { return strings.Contains(c.Value, "\x00Z\x00") }
	return r != nil && slices.ContainsFunc(r.Cells, named)
}

// hides reports whether an item in a row makes the owner of cells in the plain family unknown.
func (w *World) hides(g presence, row string) bool {
	return w.ruleOf(g.of).Typed && !g.alone && !strings.Contains(row, "-by#")
}

// haunt puts a cell back that an item once had and has no longer.
func (w *World) haunt() *Plant {
	_, owner := w.wanted()
	var all []column
	for at, had := range w.columns {
		if _, has := owner[at]; !has && len(had) == 1 && w.newest(at) == nil {
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b column) int { return strings.Compare(a.String(), b.String()) })
	at := all[w.rnd.IntN(len(all))]
	var of guarded.Item
	for of = range w.columns[at] {
	}
	w.set(at.row, cells.Cell{Family: at.family, Qualifier: at.qualifier, At: w.now - 1, Value: "ghost"})
	p := &Plant{What: "a cell that was: " + at.String(), Row: at.row, Visible: at.family == "d",
		undo: func() { w.remove(at.row, at.is) }}
	w.expect(p, at, of)
	return p
}

// expect sets what a cell in a column that was an item's must show.
func (w *World) expect(p *Plant, at column, of guarded.Item) {
	r := w.ruleOf(of)
	_, exists := w.Items[of]
	var mine *presence
	unknown := false
	for _, g := range w.guards(at.row) {
		if g.of == of {
			mine = &g
		}
		unknown = unknown || at.family == "d" && w.hides(g, at.row)
	}
	switch {
	case mine != nil && (at.family != "d" || !w.hides(*mine, at.row)):
		kept := at.family == "h" && r.Removed == "keep" || r.Keep && !exists && mine.live
		if !kept {
			p.Item, p.undo = &of, nil
		}
	case at.family == "h" && r.Removed == "keep": // whoever has it may keep it
	case unknown:
		p.Cell, p.Unowned = at.String(), true
	case !w.ofRetired(at.row):
		p.Cell = at.String()
	}
}

// foreign writes a cell that no item can have.
func (w *World) foreign() *Plant {
	rows := append(slices.Sorted(maps.Keys(w.Bigtable.Rows)), "zz", "sh#p9")
	at := column{rows[w.rnd.IntN(len(rows))], "d", "\xfe nobody's"}
	p := &Plant{What: "a foreign cell: " + at.String(), Row: at.row, Visible: true}
	unknown := false
	for _, g := range w.guards(at.row) {
		_, exists := w.Items[g.of]
		switch {
		case g.alone && w.ruleOf(g.of).Keep && !exists && g.live:
			return nil // it looks like one of the cells that the expired item had
		case g.alone:
			p.Item = &g.of
		}
		unknown = unknown || w.hides(g, at.row)
	}
	w.set(at.row, cells.Cell{Family: at.family, Qualifier: at.qualifier, At: w.now - 1, Value: "app"})
	if p.Item != nil {
		return p
	}
	p.undo = func() { w.remove(at.row, at.is) }
	switch {
	case unknown:
		p.Cell, p.Unowned = at.String(), true
	case !w.ofRetired(at.row):
		p.Cell = at.String()
	}
	return p
}

// unguard deletes the guard of an item that has cells in the row.
func (w *World) unguard() *Plant {
	all, owner := w.wanted()
	if len(all) == 0 {
		return nil
	}
	at := all[w.rnd.IntN(len(all))]
	of := owner[at]
	if w.agesIn(at.row, of) {
		return nil // without its guard it is not known that a cell has aged
	}
	for _, g := range w.guards(at.row) {
		if g.of == of && g.live {
			w.remove(at.row, func(c *cells.Cell) bool { return *c == g.cell })
			return &Plant{What: "a guard less: " + at.String(), Row: at.row, Item: &of}
		}
	}
	return nil
}

// unsecret seals the guard of an item with a secret that is lost. It may be the guard of the item,
// so nothing differs where the item has all that the row holds.
func (w *World) unsecret() *Plant {
	all, owner := w.wanted()
	if len(all) == 0 {
		return nil
	}
	at := all[w.rnd.IntN(len(all))]
	of, row := owner[at], w.Bigtable.Rows[at.row]
	if !w.program(of).SealsKeys() || w.agesIn(at.row, of) || slices.ContainsFunc(row.Cells, func(c cells.Cell) bool {
		_, has := owner[column{at.row, c.Family, c.Qualifier}]
		return !has && (c.Family == "d" || c.Family == "a") // what is kept there is unproven beside such a guard
	}) {
		return nil
	}
	for _, g := range w.guards(at.row) {
		if g.of != of || !g.live {
			continue
		}
		named := guard.Guard{Pipeline: "p", Table: sourceOf(of.Table), Key: []byte(of.Key)}
		lost := g.cell
		lost.Value = string(lostSealer().Append(nil, named, []byte(at.row), []byte(lost.Qualifier)))
		w.remove(at.row, func(c *cells.Cell) bool { return *c == g.cell })
		w.set(at.row, lost)
		return &Plant{What: "a guard of a lost secret: " + at.String(), Row: at.row, undo: func() {
			w.remove(at.row, func(c *cells.Cell) bool { return *c == lost })
			w.set(at.row, g.cell)
		}}
	}
	return nil
}

// agesIn reports whether an item has a cell in a row that may have aged away.
func (w *World) agesIn(row string, of guarded.Item) bool {
	all, owner := w.wanted()
	for _, at := range all {
		if at.row == row && owner[at] == of && at.family == "a" {
			return true
		}
	}
	return false
}

// future moves a guard to a version that no change can have.
func (w *World) future() *Plant {
	rows := slices.Sorted(maps.Keys(w.Bigtable.Rows))
	row := rows[w.rnd.IntN(len(rows))]
	all := w.guards(row)
	if len(all) == 0 {
		return nil
	}
	g := all[w.rnd.IntN(len(all))]
	if w.agesIn(row, g.of) && g.live {
		return nil
	}
	to := w.now + 3*int64(Lead)
	for i := range w.Bigtable.Rows[row].Cells {
		if c := &w.Bigtable.Rows[row].Cells[i]; *c == g.cell {
			c.At = to
		}
	}
	return &Plant{What: "a guard in the future: " + row, Row: row, Item: &g.of, future: change.Version(to)}
}

// stale adds the guard of an item that never was in a row of its rule.
func (w *World) stale() *Plant {
	of := w.keyOf(w.rules[w.rnd.IntN(len(w.rules))])
	if w.Ever[of] != nil {
		return nil
	}
	rows, err := w.project(of, of.Key)
	if err != nil || len(rows) == 0 {
		return nil
	}
	row, q := string(rows[0].Key), guard.Qualifier("p", sourceOf(of.Table), []byte(of.Key))
	g := cells.Cell{Family: transform.LiveFamily, Qualifier: string(q[:]), At: w.now - 120_000}
	if rows[0].Class == transform.ClassR {
		g.Qualifier = guard.Exclusive
	}
	g.Value = w.guardValue(of, row, g.Qualifier)
	w.set(row, g)
	if w.ruleOf(of).Keep {
		return &Plant{What: "a kept guard: " + row, Row: row,
			undo: func() { w.remove(row, func(c *cells.Cell) bool { return *c == g }) }}
	}
	return &Plant{What: "a guard too many: " + row, Row: row, Item: &of}
}
