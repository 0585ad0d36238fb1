package oracle

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// comparison merges the sorted projection with the target's rows.
type comparison struct {
	options  Options
	families []transform.Family
	wanted   sorted
	result   *Result

	group   []cell           // the wanted cells of one row; empty at the end
	nextRow *cell            // first wanted cell of the next row
	have    []*bigtable.Cell // of the target's row; used again for each row

	decoder change.Decoder
}

// nextWantedRow reads the cells of the next wanted row.
func (c *comparison) nextWantedRow() error {
	c.group = c.group[:0]
	if c.nextRow != nil {
		c.group = append(c.group, *c.nextRow)
		c.nextRow = nil
	}
	for {
		next, err := c.wanted.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(c.group) > 0 && !bytes.Equal(next.row, c.group[0].row) {
			c.nextRow = &next
			break
		}
		c.group = append(c.group, next)
	}
	if len(c.group) > 0 {
		c.result.Rows++
	}
	return nil
}

// compareRow compares one row of the target, and reports the wanted rows before it as missing.
func (c *comparison) compareRow(have *bigtable.Row) error {
	for len(c.group) > 0 && bytes.Compare(c.group[0].row, have.Key) < 0 {
		c.missingRow()
		if err := c.nextWantedRow(); err != nil {
			return err
		}
	}
	if len(c.group) == 0 || !bytes.Equal(c.group[0].row, have.Key) {
		c.extraRow(have)
		return nil
	}
	c.compareCells(have)
	return c.nextWantedRow()
}

// reportRest reports the wanted rows after the target's last row.
func (c *comparison) reportRest() error {
	for len(c.group) > 0 {
		c.missingRow()
		if err := c.nextWantedRow(); err != nil {
			return err
		}
	}
	return nil
}

// missingRow reports a wanted row that the target does not have, unless all its cells may have aged
// away.
func (c *comparison) missingRow() {
	lost := false
	for i := range c.group {
		f := c.families[c.group[i].family]
		switch {
		case c.expired(f, c.group[i].time):
		case f.Ages() && c.group[i].time == unmapped && !c.options.Now.IsZero():
			c.result.Unproven++
		default:
			c.result.Cells++
			lost = true
		}
	}
	if lost {
		c.result.MissingRows++
		c.report(Difference{Kind: MissingRow, Row: string(c.group[0].row), KeyHash: c.group[0].keyHash})
	}
}

// extraRow reports a row that only the target has, unless all its cells may remain.
func (c *comparison) extraRow(have *bigtable.Row) {
	for i := range have.Cells {
		f := c.familyIndex(have.Cells[i].Family)
		if f >= 0 && !c.mayRemain(c.families[f], &have.Cells[i]) {
			c.result.ExtraRows++
			c.report(Difference{Kind: ExtraRow, Row: string(have.Key)})
			return
		}
	}
}

// mayRemain reports whether the target may have a cell that the source's projection lacks.
func (c *comparison) mayRemain(f transform.Family, have *bigtable.Cell) bool {
	return slices.Contains(c.options.Outlive, f.Name) || c.expired(f, have.Time.UnixMilli())
}

// familyIndex returns the index of a family in the programs' list, by which cells are sorted; -1
// for an unknown family.
func (c *comparison) familyIndex(name string) int {
	return slices.IndexFunc(c.families, func(f transform.Family) bool { return f.Name == name })
}

// expired reports whether a cell with this time may have been collected, or will be.
func (c *comparison) expired(f transform.Family, ms int64) bool {
	if !f.Ages() || ms == unmapped || c.options.Now.IsZero() {
		return false
	}
	return time.UnixMilli(ms).Before(c.options.Now.Add(-f.MaxAge))
}

// compareCells compares a row column by column. Both sides are in the same order.
func (c *comparison) compareCells(row *bigtable.Row) {
	have := c.sortedCells(row)
	for from := 0; from < len(c.group); {
		first := &c.group[from]
		to := from + 1
		for to < len(c.group) && c.group[to].sameColumn(first) {
			to++
		}
		for len(have) > 0 && c.compareColumnName(have[0], first) < 0 {
			c.extraCell(row, have[0])
			have = have[1:]
		}
		n := 0
		for n < len(have) && c.compareColumnName(have[n], first) == 0 {
			n++
		}
		c.compareColumn(c.families[first.family], c.group[from:to], have[:n:n])
		have = have[n:]
		from = to
	}
	for _, cell := range have {
		c.extraCell(row, cell)
	}
}

// sortedCells returns the row's cells in the order of the projection, without cells of families
// that no program has.
func (c *comparison) sortedCells(row *bigtable.Row) []*bigtable.Cell {
	c.have = c.have[:0]
	for i := range row.Cells {
		if c.familyIndex(row.Cells[i].Family) >= 0 {
			c.have = append(c.have, &row.Cells[i])
		}
	}
	slices.SortStableFunc(c.have, func(a, b *bigtable.Cell) int {
		family := cmp.Compare(c.familyIndex(a.Family), c.familyIndex(b.Family))
		return cmp.Or(family, bytes.Compare(a.Qualifier, b.Qualifier), b.Time.Compare(a.Time))
	})
	return c.have
}

// compareColumnName orders the columns of a cell of the target and a wanted one.
func (c *comparison) compareColumnName(have *bigtable.Cell, want *cell) int {
	return cmp.Or(cmp.Compare(c.familyIndex(have.Family), want.family), bytes.Compare(have.Qualifier, want.qualifier))
}

// extraCell reports a cell in a column that only the target has, unless it may remain.
func (c *comparison) extraCell(row *bigtable.Row, cell *bigtable.Cell) {
	if f := c.families[c.familyIndex(cell.Family)]; !c.mayRemain(f, cell) {
		c.report(c.difference(ExtraCell, row.Key, cell.Family, cell.Qualifier, 0, 0, nil, cell.Value))
	}
}

// compareColumn compares the cells of one column, which both sides have in the order of time,
// newest first.
func (c *comparison) compareColumn(f transform.Family, want []cell, have []*bigtable.Cell) {
	// A cell without a mapped time, which sorts last, is wanted as the column's newest, whatever
	// older cells there are.
	if want[len(want)-1].time == unmapped {
		c.compareNewest(f, want, have)
		return
	}
	versions := 0
	for len(want) > 0 && (f.MaxVersions == 0 || versions < f.MaxVersions) {
		same := 1 // items whose mapping allows that they share a cell: the value of any of them is right
		for same < len(want) && want[same].time == want[0].time {
			same++
		}
		have = c.compareTime(f, want[:same], have)
		want = want[same:]
		versions++
	}
	for _, extra := range have {
		if !c.mayRemain(f, extra) && (f.MaxVersions == 0 || versions < f.MaxVersions) {
			versions++
			at := change.Millis(extra.Time.UnixMilli())
			c.report(c.difference(ExtraCell, c.group[0].row, f.Name, extra.Qualifier, at, 0, nil, extra.Value))
		}
	}
}

// compareTime compares the cells of a column with one mapped time, and returns the target's other
// cells.
func (c *comparison) compareTime(f transform.Family, want []cell, have []*bigtable.Cell) []*bigtable.Cell {
	sameTime := func(h *bigtable.Cell) bool { return h.Time.UnixMilli() == want[0].time }
	if c.expired(f, want[0].time) {
		return slices.DeleteFunc(have, sameTime)
	}
	c.result.Cells++
	i := slices.IndexFunc(have, sameTime)
	if i < 0 {
		c.report(c.differenceAt(MissingCell, &want[0], nil))
		return have
	}
	if !c.matches(f, want, have[i].Value) {
		c.report(c.differenceAt(Value, &want[0], have[i].Value))
	}
	return slices.Delete(have, i, i+1)
}

// compareNewest compares the newest cell of a column with the wanted cells, which have no mapped
// time.
func (c *comparison) compareNewest(f transform.Family, want []cell, have []*bigtable.Cell) {
	switch {
	case len(have) > 0:
		c.result.Cells++
		if !c.matches(f, want, have[0].Value) {
			c.report(c.differenceAt(Value, &want[0], have[0].Value))
		}
	case f.Ages() && !c.options.Now.IsZero():
		c.result.Unproven++ // its age is that of the item's last change, which the source does not contain
	default:
		c.result.Cells++
		c.report(c.differenceAt(MissingCell, &want[0], nil))
	}
}

// matches reports whether a value of the target is one of the wanted values. An aggregate includes
// earlier values too, and the value of a sketch of distinct values cannot be compared: that it
// exists must be enough.
func (c *comparison) matches(f transform.Family, want []cell, have []byte) bool {
	if f.Aggregate == "hll" {
		return true
	}
	if f.Aggregate != "" {
		return slices.ContainsFunc(want, func(w cell) bool { return includes(f.Aggregate, w.value, have) })
	}
	value := valueKey(have, c.options.ShowValues)
	return slices.ContainsFunc(want, func(w cell) bool {
		if w.rawJSON {
			return bytes.Equal(w.value, valueKey(c.canonical(have), c.options.ShowValues))
		}
		return bytes.Equal(w.value, value)
	})
}

// includes reports whether an aggregate may include a value: a minimum is no higher, a maximum or a
// sum of values that are not negative no lower.
func includes(aggregate string, want, have []byte) bool {
	if len(want) != 8 || len(have) != 8 {
		return false
	}
	w, h := int64(binary.BigEndian.Uint64(want)), int64(binary.BigEndian.Uint64(have))
	return strings.HasPrefix(aggregate, "min") && h <= w || !strings.HasPrefix(aggregate, "min") && h >= w
}

// canonical returns a document as the projection of its item has it; what is none as it is.
func (c *comparison) canonical(document []byte) []byte {
	c.decoder.Reset()
	img, err := c.decoder.Image(document)
	if err != nil {
		return document
	}
	return img.AppendJSON(nil)
}

// differenceAt returns the difference between a wanted cell and the value that the target has.
func (c *comparison) differenceAt(kind Kind, w *cell, have []byte) Difference {
	at := change.Millis(w.time)
	if w.time == unmapped {
		at = 0
	}
	return c.difference(kind, w.row, c.families[w.family].Name, w.qualifier, at, w.keyHash, w.value, have)
}

func (c *comparison) difference(
	kind Kind, row []byte, family string, qualifier []byte, at change.Millis, hash uint64, want, have []byte,
) Difference {
	d := Difference{Kind: kind, Row: string(row), Family: family, Qualifier: string(qualifier), Time: at, KeyHash: hash}
	if c.options.ShowValues {
		d.Want, d.Have = bytes.Clone(want), bytes.Clone(have)
	}
	return d
}

// report counts a difference, and stores it within the limit.
func (c *comparison) report(d Difference) {
	c.result.Count++
	if len(c.result.Differences) < c.options.Limit {
		c.result.Differences = append(c.result.Differences, d)
	}
}
