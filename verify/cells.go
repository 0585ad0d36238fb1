package verify

import (
	"bytes"
	"strings"

	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// contents returns what the cells of a row should hold, where the differing cells are listed.
func (s *Settler) contents(cells []transform.Cell) []*Content {
	if s.Cells == 0 {
		return nil
	}
	out := make([]*Content, len(cells))
	for i := range cells {
		out[i] = guarded.ContentOf(cells[i].Value, s.Values)
	}
	return out
}

// list lists a difference of an item, up to Settler.Cells of them.
func (j *judge) list(x *settling, d CellDifference) error {
	if len(x.seen.cells) >= j.s.Cells {
		return nil
	}
	rules, entry, err := j.guards.Names(item{Table: x.Table, Key: x.Key}, d.Row, d.Family, d.Qualifier)
	if err != nil {
		return err
	}
	d.Row, d.Qualifier = bytes.Clone(d.Row), bytes.Clone(d.Qualifier)
	d.Rule = strings.Join(rules, " | ")
	d.Entry, d.Columns, d.ByAttributes = entry.Text, entry.To, entry.ByAttributes
	x.seen.cells = append(x.seen.cells, d)
	return nil
}

// listWanted lists a wanted cell of a row; have is nil where the row lacks it.
func (j *judge) listWanted(x *settling, kind Kind, row string, i int, have *guarded.Held) error {
	if len(x.seen.cells) >= j.s.Cells {
		return nil
	}
	d := CellDifference{Kind: kind, Row: []byte(row), Want: x.want.contents[row][i]}
	d.Family, d.Qualifier, d.Time = x.want.rows[row][i].Place(j.families)
	if have != nil {
		d.Have = guarded.ContentOf(have.Value, j.s.Values)
	}
	return j.list(x, d)
}

// listExtra lists a cell of the target that the item should not have.
func (j *judge) listExtra(x *settling, row string, have *guarded.Held) error {
	return j.list(x, CellDifference{Kind: ExtraCell, Row: []byte(row), Family: have.Family, Qualifier: have.Qualifier,
		Have: guarded.ContentOf(have.Value, j.s.Values)})
}
