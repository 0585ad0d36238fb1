// Package cells is a Bigtable table in memory: rows of cells, with the mutations and reads that the
// sink sends.
package cells

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// Table is a table. It keeps all versions of a cell, so that a reader gets what a garbage
// collection that has not run yet leaves.
type Table struct{ Rows map[string]*Row }

// Row is a row of a table.
type Row struct{ Cells []Cell }

// Cell is one cell.
type Cell struct {
	Family, Qualifier string
	At                int64
	Value             string
}

// New returns a table without rows.
func New() *Table { return &Table{Rows: map[string]*Row{}} }

// Row returns a row, which it adds if there is none.
func (b *Table) Row(key string) *Row {
	r := b.Rows[key]
	if r == nil {
		r = &Row{}
		b.Rows[key] = r
	}
	return r
}

// Holds reports whether a row has a guard of an item at a version or later.
func (r *Row) Holds(qualifier string, v change.Version) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool {
		return (c.Family == transform.LiveFamily || c.Family == transform.DeadFamily) && c.Qualifier == qualifier &&
			change.Version(c.At) >= v
	})
}

// Execute executes one mutation.
func (r *Row) Execute(m *bigtable.RowMutation) {
	switch m.Kind {
	case bigtable.DeleteRow:
		r.Cells = nil
	case bigtable.DeleteFamily:
		r.Cells = slices.DeleteFunc(r.Cells, func(c Cell) bool { return c.Family == m.Family })
	case bigtable.DeleteColumn:
		q := string(m.Qualifier)
		r.Cells = slices.DeleteFunc(r.Cells, func(c Cell) bool {
			return c.Family == m.Family && c.Qualifier == q && (m.From == 0 && m.To == 0 || c.At >= m.From && c.At < m.To)
		})
	case bigtable.SetCell:
		n := Cell{m.Family, string(m.Qualifier), m.From, string(m.Value)}
		for i, c := range r.Cells {
			if c.Family == n.Family && c.Qualifier == n.Qualifier && c.At == n.At {
				r.Cells[i] = n
				return
			}
		}
		r.Cells = append(r.Cells, n)
	}
}

// Seen returns what a plain reader gets of a row in columns with some qualifiers: the newest cell
// of each.
func (b *Table) Seen(key string, owns func(qualifier string) bool) string {
	r := b.Rows[key]
	if r == nil {
		return ""
	}
	var cells []string
	for i, c := range r.Cells {
		if c.Family == transform.LiveFamily || c.Family == transform.DeadFamily || !owns(c.Qualifier) {
			continue
		}
		hidden := slices.ContainsFunc(r.Cells[:i], func(o Cell) bool { return o.hides(&c) }) ||
			slices.ContainsFunc(r.Cells[i+1:], func(o Cell) bool { return o.hides(&c) })
		if !hidden {
			cells = append(cells, c.Family+":"+c.Qualifier+"="+c.Value)
		}
	}
	slices.Sort(cells)
	return strings.Join(cells, " ")
}

// hides reports whether a cell is a newer one of the same column.
func (c *Cell) hides(o *Cell) bool {
	return c.Family == o.Family && c.Qualifier == o.Qualifier && c.At > o.At
}

// Held answers the read of what rows hold of an item.
func (b *Table) Held(item transform.Item, reads []transform.RowRead) []transform.HeldRow {
	all := make([]transform.HeldRow, len(reads))
	for i := range reads {
		read, to := &reads[i], &all[i]
		to.Key = read.Key
		r := b.Rows[string(read.Key)]
		if r == nil {
			continue
		}
		guard := string(item.Guard[:])
		if read.Class == transform.ClassR {
			guard = "i"
		}
		for _, c := range r.Cells {
			if c.Family == transform.LiveFamily && c.Qualifier == guard {
				to.Live = max(to.Live, change.Version(c.At))
			}
			if c.Family == transform.DeadFamily && c.Qualifier == guard {
				to.Dead = max(to.Dead, change.Version(c.At))
			}
		}
		for _, f := range read.Families {
			to.Cells = append(to.Cells, r.in(&f)...)
		}
	}
	return all
}

// in returns the cells of the columns that a read names, the cells of a column together, newest
// first.
func (r *Row) in(f *transform.FamilyRead) (cells []transform.HeldCell) {
	var own []Cell
	for _, c := range r.Cells {
		if c.Family == f.Family && inRanges(f.Ranges, c.Qualifier) {
			own = append(own, c)
		}
	}
	slices.SortFunc(own, func(a, b Cell) int {
		if d := strings.Compare(a.Qualifier, b.Qualifier); d != 0 {
			return d
		}
		return int(b.At - a.At)
	})
	n := 0
	for i, c := range own {
		if n++; i == 0 || own[i-1].Qualifier != c.Qualifier {
			n = 1
		}
		if f.Versions == 0 || n <= f.Versions {
			cells = append(cells, transform.HeldCell{
				Family: c.Family, Qualifier: []byte(c.Qualifier), Value: []byte(c.Value), Time: c.At,
			})
		}
	}
	return cells
}

func inRanges(all []transform.ColumnRange, q string) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(r transform.ColumnRange) bool {
		return q >= string(r.From) && (len(r.To) == 0 || q < string(r.To))
	})
}
