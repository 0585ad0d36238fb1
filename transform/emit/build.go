package emit

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// builder compares the projection of the last image with those before it.
type builder struct {
	m    *memory
	w    *Write
	now  view
	last *change.Change
}

func (b *builder) build() error {
	if b.now.rule != nil {
		b.w.Heals = b.now.rule.Heals
	} else if len(b.m.views) > 0 {
		b.w.Heals = b.m.views[len(b.m.views)-1].rule.Heals
	}
	for i := range b.now.rows {
		if err := b.enterRow(&b.now.rows[i]); err != nil {
			return err
		}
	}
	// New rows first, left ones last: a reader may see a moving item twice, never not at all.
	for v := range b.m.views {
		rows := b.m.views[v].rows
		for i := range rows {
			if b.hasRow(rows[i].key) {
				continue
			}
			if err := b.leaveRow(v, &rows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) hasRow(key []byte) bool {
	for i := range b.w.Rows {
		if string(b.w.Rows[i].Key) == string(key) {
			return true
		}
	}
	return false
}

func (b *builder) cells(pr *projected) []ir.Emitted { return b.m.exec.Cells[pr.from:pr.to] }

// enterRow writes a row that the item is in now.
func (b *builder) enterRow(pr *projected) error {
	pl := pr.plan
	row := Row{Key: pr.key, Class: pl.Class, Exclusive: pl.Exclusive}
	if pl.Exclusive {
		row.KeepHistory = pl.SparedFamilies
	}
	mine := b.cells(pr)
	clear(b.m.seen)
	from := len(b.m.deletes)
	d := deleter{b: b, row: &row, mine: mine, exclusive: pl.Exclusive, from: from}
	if !pl.Exclusive || len(pl.History) > 0 {
		d.all(b.m.exec.Cells[pr.to:pr.possible])
		d.all(mine)
		for v := range b.m.views {
			for i := range b.m.views[v].rows {
				if old := &b.m.views[v].rows[i]; string(old.key) == string(pr.key) {
					d.all(b.m.exec.Cells[old.from:old.possible])
				}
			}
		}
	}
	cells := len(b.m.cells)
	for i := range mine {
		b.m.cells = append(b.m.cells, output(&mine[i]))
	}
	b.m.cells = append(b.m.cells, d.emptied...)
	row.Deletes = b.m.deletes[from:len(b.m.deletes):len(b.m.deletes)]
	row.Cells = b.m.cells[cells:len(b.m.cells):len(b.m.cells)]
	return b.addRow(row)
}

// leaveRow clears a row that the item was in, first seen in view v.
func (b *builder) leaveRow(v int, pr *projected) error {
	pl := pr.plan
	row := Row{Key: pr.key, Class: pl.Class, Left: true, Exclusive: pl.Exclusive}
	removed := b.last.Op == change.Remove
	tombstone := removed && pl.Rule.OnRemove == "tombstone"
	if pl.WipesOnRemoval && removed {
		row.Exclusive = true
	}
	if row.Exclusive {
		row.KeepHistory = familiesThatStay(pl, tombstone)
	}
	from := len(b.m.deletes)
	d := deleter{b: b, row: &row, exclusive: row.Exclusive, tombstone: tombstone, from: from}
	if !row.Exclusive || len(row.KeepHistory) > 0 {
		for ; v < len(b.m.views); v++ {
			for i := range b.m.views[v].rows {
				if old := &b.m.views[v].rows[i]; string(old.key) == string(pr.key) {
					d.all(b.m.exec.Cells[old.from:old.possible])
				}
			}
		}
	}
	cells := len(b.m.cells)
	b.m.cells = append(b.m.cells, d.emptied...)
	if f := pl.Rule.ArchiveFamily; f != nil && pl == pl.Rule.Plans[0] {
		if removed && b.last.TTL {
			b.archive(f)
		}
	}
	row.Deletes = b.m.deletes[from:len(b.m.deletes):len(b.m.deletes)]
	row.Cells = b.m.cells[cells:len(b.m.cells):len(b.m.cells)]
	return b.addRow(row)
}

// archive keeps the expired item in a family of its own, one column per item.
func (b *builder) archive(f *ir.FamilyRule) {
	if b.last.Old != nil {
		b.m.cells = append(b.m.cells, Cell{Family: f.Name, Qualifier: b.m.key, Value: b.last.Old})
	}
}

func (b *builder) addRow(row Row) error {
	if err := checkRow(&row); err != nil {
		return err
	}
	b.w.Rows = append(b.w.Rows, row)
	return nil
}

// familiesThatStay names the families whose cells outlive the item.
func familiesThatStay(pl *ir.Plan, tombstone bool) (names []string) {
	for _, name := range pl.History {
		for _, e := range pl.Emitters {
			if slices.ContainsFunc(e.Columns(), func(o ir.ColumnSet) bool {
				return o.Family.Name == name &&
					(tombstone || o.Family.Removed != "delete")
			}) {
				names = append(names, name)
				break
			}
		}
	}
	if f := pl.Rule.ArchiveFamily; f != nil && pl == pl.Rule.Plans[0] {
		names = append(names, f.Name)
	}
	return names
}

// deleter decides what becomes of cells that the item had or may have had in a row.
type deleter struct {
	b         *builder
	row       *Row
	mine      []ir.Emitted // cells that the item has in this row now
	exclusive bool         // the row is wiped anyway, but for the families in row.KeepHistory
	tombstone bool
	from      int // the row's first delete
	emptied   []Cell
}

func (d *deleter) all(cells []ir.Emitted) {
	for i := range cells {
		d.cell(&cells[i])
	}
}

func (d *deleter) cell(c *ir.Emitted) {
	switch {
	case c.By.Aggregate():
		return // grow-only: what was merged stays
	case d.exclusive && !slices.Contains(d.row.KeepHistory, c.Family.Name):
		return
	case c.By.Time.Siblings:
		// Siblings share the column: exactly this cell, and never by its version.
		if c.Mapped && !d.hasNow(c, true) && !d.endsOrKeeps(c) {
			d.addDelete(Delete{Family: c.Family.Name, Qualifier: c.Qualifier, From: c.Time, To: c.Time + 1})
		}
	case c.By.KeepsVersions(c.Family):
		// Older versions are wanted while the item has the column.
		if !d.hasNow(c, false) && !d.endsOrKeeps(c) {
			d.addDelete(Delete{Family: c.Family.Name, Qualifier: c.Qualifier})
		}
	case d.hasNow(c, false) && !c.Possible && !c.By.Timed:
		// The new version hides the old one.
	default:
		d.addDelete(Delete{Family: c.Family.Name, Qualifier: c.Qualifier, Versioned: !c.By.Timed && !c.By.Shared})
	}
}

// endsOrKeeps handles families whose removed cells stay, or end in an empty version.
func (d *deleter) endsOrKeeps(c *ir.Emitted) bool {
	if !c.Family.History {
		return false
	}
	if d.tombstone || c.Family.Removed == "empty" {
		if !c.By.Time.Siblings && !c.Possible && !d.isEmptied(c) {
			d.emptied = append(d.emptied, Cell{Family: c.Family.Name, Qualifier: c.Qualifier})
		}
		return true
	}
	return c.Family.Removed == "keep"
}

func (d *deleter) isEmptied(c *ir.Emitted) bool {
	for i := range d.emptied {
		if d.emptied[i].Family == c.Family.Name && string(d.emptied[i].Qualifier) == string(c.Qualifier) {
			return true
		}
	}
	return false
}

// hasNow looks for the cell's column, or for the very cell, among those that the item has now.
func (d *deleter) hasNow(c *ir.Emitted, exact bool) bool {
	if len(d.mine) > 64 {
		return d.indexed(c, exact)
	}
	for i := range d.mine {
		if exact && d.mine[i].SameCell(c) || !exact && d.mine[i].SameColumn(c) {
			return true
		}
	}
	return false
}

func (d *deleter) indexed(c *ir.Emitted, exact bool) bool {
	m := d.b.m
	if len(m.seen) == 0 {
		m.seen = make(map[string]int, 2*len(d.mine))
		for i := range d.mine {
			m.seen[d.mine[i].ColumnKey()] = i
			m.seen[d.mine[i].CellKey()] = i
		}
	}
	k := c.ColumnKey()
	if exact {
		k = c.CellKey()
	}
	_, ok := m.seen[k]
	return ok
}

// addDelete adds a delete once, and never one that would take a cell of this very change.
func (d *deleter) addDelete(del Delete) {
	list := d.b.m.deletes
	for i := d.from; i < len(list) && len(list)-d.from <= 256; i++ {
		if o := &list[i]; o.Family == del.Family && o.From == del.From && o.To == del.To &&
			string(o.Qualifier) == string(del.Qualifier) {
			o.Versioned = o.Versioned && del.Versioned
			return
		}
	}
	d.b.m.deletes = append(list, del)
}
