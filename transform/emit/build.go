package emit

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// builder fills a Write from the projections of the last image and of those before it.
type builder struct {
	m    *memory
	w    *Write
	now  projection
	last *change.Change // the last of the changes; now is empty if it removed the item
	wipe bool           // a removal by `on_remove: row` deletes the row with the cells of other items
}

// build adds the rows that the item enters, then those that it leaves: a reader may see a moving
// item in both rows, but never in neither.
func (b *builder) build() error {
	if b.now.rule != nil {
		b.w.Heals = b.now.rule.Heals
	} else if len(b.m.earlier) > 0 {
		b.w.Heals = b.m.earlier[len(b.m.earlier)-1].rule.Heals
	}
	for i := range b.now.rows {
		if err := b.enterRow(&b.now.rows[i]); err != nil {
			return err
		}
	}
	for at := range b.m.earlier {
		rows := b.m.earlier[at].rows
		for i := range rows {
			if b.hasRow(rows[i].key) {
				continue
			}
			if err := b.leaveRow(at, &rows[i]); err != nil {
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

func (b *builder) cells(pr *projectedRow) []ir.Emitted { return b.m.eval.Cells[pr.from:pr.to] }

// enterRow writes a row that the item is in now.
func (b *builder) enterRow(pr *projectedRow) error {
	pl := pr.plan
	row := Row{Key: pr.key, Class: pl.Class, Exclusive: pl.Exclusive}
	if pl.Exclusive {
		row.KeepHistory = pl.SparedFamilies
	}
	current := b.cells(pr)
	clear(b.m.seen)
	from := len(b.m.deletes)
	d := deleter{b: b, row: &row, current: current, exclusive: pl.Exclusive, from: from}
	if !pl.Exclusive || len(pl.History) > 0 {
		d.addDeletes(b.m.eval.Cells[pr.to:pr.possible])
		d.addDeletes(current) // cells with mapped times do not always hide the earlier ones of their column
		d.addEarlierDeletes(0, pr.key)
	}
	cells := len(b.m.cells)
	for i := range current {
		b.m.cells = append(b.m.cells, outputCell(&current[i]))
	}
	b.m.cells = append(b.m.cells, d.emptied...)
	row.Deletes = b.m.deletes[from:len(b.m.deletes):len(b.m.deletes)]
	row.Cells = b.m.cells[cells:len(b.m.cells):len(b.m.cells)]
	return b.addRow(row)
}

// leaveRow clears a row that the item was in; at is the index of the first earlier projection that
// has it.
func (b *builder) leaveRow(at int, pr *projectedRow) error {
	pl := pr.plan
	row := Row{Key: pr.key, Class: pl.Class, Left: true, Exclusive: pl.Exclusive}
	removed := b.last.Op == change.Remove
	tombstone := removed && pl.Rule.OnRemove == "tombstone"
	if pl.WipesOnRemoval && removed && b.wipe {
		row.Exclusive = true
	}
	if row.Exclusive {
		row.KeepHistory = remainingFamilies(pl, tombstone)
	}
	from := len(b.m.deletes)
	d := deleter{b: b, row: &row, exclusive: row.Exclusive, tombstone: tombstone, from: from}
	if !row.Exclusive || len(row.KeepHistory) > 0 {
		d.addEarlierDeletes(at, pr.key)
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

// archive adds the expired item as a cell of the archive family, in a column named by the item's
// key.
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

// remainingFamilies returns the families with cells that remain when the item leaves the row.
func remainingFamilies(pl *ir.Plan, tombstone bool) (names []string) {
	for _, name := range pl.History {
		for _, e := range pl.Emitters {
			stays := func(c ir.ColumnSet) bool {
				return c.Family.Name == name && (tombstone || c.Family.Removed != "delete")
			}
			if slices.ContainsFunc(e.Columns(), stays) {
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

// deleter adds the deletes, or the empty versions, for cells that the item had or may have had in a
// row.
type deleter struct {
	b         *builder
	row       *Row
	current   []ir.Emitted // cells that the item has in this row now
	exclusive bool         // the row is wiped, except for the families in row.KeepHistory
	tombstone bool         // the item is removed, and each history gets an empty version at its end
	from      int          // where the row's deletes begin in memory.deletes
	emptied   []Cell       // the empty versions, the last ones of their columns
}

// addEarlierDeletes adds the deletes of the cells that the item had in a row, by the projections
// memory.earlier[at:].
func (d *deleter) addEarlierDeletes(at int, row []byte) {
	m := d.b.m
	for _, pr := range m.earlier[at:] {
		for i := range pr.rows {
			if old := &pr.rows[i]; string(old.key) == string(row) {
				d.addDeletes(m.eval.Cells[old.from:old.possible])
			}
		}
	}
}

func (d *deleter) addDeletes(cells []ir.Emitted) {
	for i := range cells {
		d.addCellDelete(&cells[i])
	}
}

// addCellDelete adds the delete of one cell, unless the wipe deletes it, a new version hides it, or
// the cell stays.
func (d *deleter) addCellDelete(c *ir.Emitted) {
	switch {
	case c.By.Aggregate():
		return // grow-only: what was merged stays
	case d.exclusive && !slices.Contains(d.row.KeepHistory, c.Family.Name):
		return // the wipe deletes it
	case c.By.Time.Siblings:
		// Siblings share the column: delete exactly this cell, by the time that the mapping gave
		// it.
		if c.Mapped && !d.hasNow(c, true) && !d.keepsOrEmpties(c) {
			d.addDelete(Delete{Family: c.Family.Name, Qualifier: c.Qualifier, From: c.Time, To: c.Time + 1})
		}
	case c.By.KeepsVersions(c.Family):
		// Older versions are kept while the item has the column.
		if !d.hasNow(c, false) && !d.keepsOrEmpties(c) {
			d.addDelete(Delete{Family: c.Family.Name, Qualifier: c.Qualifier})
		}
	case d.hasNow(c, false) && !c.Possible && !c.By.Timed:
		// The new version hides the old one.
	default:
		d.addDelete(Delete{Family: c.Family.Name, Qualifier: c.Qualifier, Versioned: !c.By.Timed && !c.By.Shared})
	}
}

// keepsOrEmpties reports whether a removed cell stays, by the policy of its family or under a
// tombstone. Where its column must end in an empty version, it adds that version.
func (d *deleter) keepsOrEmpties(c *ir.Emitted) bool {
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

// hasNow reports whether the item has the cell's column now, or, with exact, a cell of that column
// at the same time.
func (d *deleter) hasNow(c *ir.Emitted, exact bool) bool {
	if len(d.current) > 64 {
		return d.hasNowIndexed(c, exact)
	}
	for i := range d.current {
		if exact && d.current[i].SameCell(c) || !exact && d.current[i].SameColumn(c) {
			return true
		}
	}
	return false
}

// hasNowIndexed is hasNow for rows of many cells.
func (d *deleter) hasNowIndexed(c *ir.Emitted, exact bool) bool {
	m := d.b.m
	if len(m.seen) == 0 {
		m.seen = make(map[string]int, 2*len(d.current))
		for i := range d.current {
			m.seen[d.current[i].ColumnKey()] = i
			m.seen[d.current[i].CellKey()] = i
		}
	}
	k := c.ColumnKey()
	if exact {
		k = c.CellKey()
	}
	_, ok := m.seen[k]
	return ok
}

// addDelete adds a delete, unless the row has it already. Beyond 256 deletes it no longer compares:
// a duplicate is harmless, only slower.
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

// leaveBare makes tombstones of the guards of the rows that the item enters and that are bare once
// TTL has deleted it, which is the change that follows.
func (b *builder) leaveBare(expiry *change.Change) {
	for i := range b.now.rows {
		pr := &b.now.rows[i]
		if !bare(b.cells(pr), int64(expiry.Created)) {
			continue
		}
		at := slices.IndexFunc(b.w.Rows, func(r Row) bool { return string(r.Key) == string(pr.key) && !r.Left })
		if at >= 0 {
			b.w.Rows[at].Left = true
		}
	}
	// Rows that are entered come before those that are left.
	slices.SortStableFunc(b.w.Rows, func(a, c Row) int { return flag(a.Left) - flag(c.Left) })
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
