package verify

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
	wanted   *merge
	result   *Result

	group []cell // all cells that the source asks for in one row; empty at the end
	ahead *cell  // first cell of the row after
	found []*bigtable.Cell

	decoder change.Decoder
}

// advance takes the cells of the next wanted row.
func (c *comparison) advance() error {
	c.group = c.group[:0]
	if c.ahead != nil {
		c.group = append(c.group, *c.ahead)
		c.ahead = nil
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
			c.ahead = &next
			break
		}
		c.group = append(c.group, next)
	}
	if len(c.group) > 0 {
		c.result.Rows++
	}
	return nil
}

// row compares one row of the target, and reports the wanted rows before it as missing.
func (c *comparison) row(have *bigtable.Row) error {
	for len(c.group) > 0 && bytes.Compare(c.group[0].row, have.Key) < 0 {
		c.missing()
		if err := c.advance(); err != nil {
			return err
		}
	}
	if len(c.group) == 0 || !bytes.Equal(c.group[0].row, have.Key) {
		c.extra(have)
		return nil
	}
	c.cells(have)
	return c.advance()
}

// rest reports what is wanted behind the target's last row.
func (c *comparison) rest() error {
	for len(c.group) > 0 {
		c.missing()
		if err := c.advance(); err != nil {
			return err
		}
	}
	return nil
}

// missing judges a wanted row that the target has not: one difference, unless all of it may have aged away.
func (c *comparison) missing() {
	lost := false
	for i := range c.group {
		f := c.families[c.group[i].family]
		switch {
		case c.expired(f, c.group[i].time):
		case f.MaxAge > 0 && c.group[i].time == unmapped && !c.options.Now.IsZero():
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

// extra judges a row that only the target has.
func (c *comparison) extra(have *bigtable.Row) {
	for i := range have.Cells {
		f := c.index(have.Cells[i].Family)
		if f >= 0 && !c.mayStay(c.families[f], &have.Cells[i]) {
			c.result.ExtraRows++
			c.report(Difference{Kind: ExtraRow, Row: string(have.Key)})
			return
		}
	}
}

func (c *comparison) mayStay(f transform.Family, have *bigtable.Cell) bool {
	return slices.Contains(c.options.Outlive, f.Name) || c.expired(f, have.Time.UnixMilli())
}

// index of a family in the programs' list, which is the order of the projection; -1 for a foreign one.
func (c *comparison) index(name string) int {
	return slices.IndexFunc(c.families, func(f transform.Family) bool { return f.Name == name })
}

// expired tells whether a cell of this time may have been collected, or will be.
func (c *comparison) expired(f transform.Family, ms int64) bool {
	return f.MaxAge > 0 && ms != unmapped && !c.options.Now.IsZero() && time.UnixMilli(ms).Before(c.options.Now.Add(-f.MaxAge))
}

// cells compares a row column by column; both sides are in one order.
func (c *comparison) cells(row *bigtable.Row) {
	have := c.inOrder(row)
	for from := 0; from < len(c.group); {
		first := &c.group[from]
		to := from + 1
		for to < len(c.group) && c.group[to].family == first.family && bytes.Equal(c.group[to].qualifier, first.qualifier) {
			to++
		}
		for len(have) > 0 && c.column(have[0], first) < 0 {
			c.extraCell(row, have[0])
			have = have[1:]
		}
		n := 0
		for n < len(have) && c.column(have[n], first) == 0 {
			n++
		}
		c.compare(c.families[first.family], c.group[from:to], have[:n:n])
		have = have[n:]
		from = to
	}
	for _, cell := range have {
		c.extraCell(row, cell)
	}
}

// inOrder gives the row's cells as the projection is sorted, without those of families that no program has.
func (c *comparison) inOrder(row *bigtable.Row) []*bigtable.Cell {
	c.found = c.found[:0]
	for i := range row.Cells {
		if c.index(row.Cells[i].Family) >= 0 {
			c.found = append(c.found, &row.Cells[i])
		}
	}
	slices.SortStableFunc(c.found, func(a, b *bigtable.Cell) int {
		return cmp.Or(cmp.Compare(c.index(a.Family), c.index(b.Family)), bytes.Compare(a.Qualifier, b.Qualifier), b.Time.Compare(a.Time))
	})
	return c.found
}

// column orders a found cell's column against a wanted one's.
func (c *comparison) column(have *bigtable.Cell, want *cell) int {
	return cmp.Or(cmp.Compare(c.index(have.Family), want.family), bytes.Compare(have.Qualifier, want.qualifier))
}

func (c *comparison) extraCell(row *bigtable.Row, cell *bigtable.Cell) {
	if f := c.families[c.index(cell.Family)]; !c.mayStay(f, cell) {
		c.report(c.difference(ExtraCell, row.Key, cell.Family, cell.Qualifier, 0, 0, nil, cell.Value))
	}
}

// compare judges the cells found in one column by those wanted, both newest first.
func (c *comparison) compare(f transform.Family, want []cell, have []*bigtable.Cell) {
	// A cell without a mapped time is the column's newest whatever stands below; it sorts last.
	if want[len(want)-1].time == unmapped {
		c.newest(f, want, have)
		return
	}
	versions := 0
	for len(want) > 0 && (f.MaxVersions == 0 || versions < f.MaxVersions) {
		same := 1 // items that acknowledged to share a cell: either's value will do
		for same < len(want) && want[same].time == want[0].time {
			same++
		}
		have = c.version(f, want[:same], have)
		want = want[same:]
		versions++
	}
	for _, extra := range have {
		if !c.mayStay(f, extra) && (f.MaxVersions == 0 || versions < f.MaxVersions) {
			versions++
			c.report(c.difference(ExtraCell, c.group[0].row, f.Name, extra.Qualifier, extra.Time.UnixMilli(), 0, nil, extra.Value))
		}
	}
}

// version compares one mapped time of a column and gives back the cells found that are left.
func (c *comparison) version(f transform.Family, want []cell, have []*bigtable.Cell) []*bigtable.Cell {
	if c.expired(f, want[0].time) {
		return slices.DeleteFunc(have, func(h *bigtable.Cell) bool { return h.Time.UnixMilli() == want[0].time })
	}
	c.result.Cells++
	i := slices.IndexFunc(have, func(h *bigtable.Cell) bool { return h.Time.UnixMilli() == want[0].time })
	if i < 0 {
		c.report(c.wantOf(MissingCell, &want[0], nil))
		return have
	}
	if !c.matches(f, want, have[i].Value) {
		c.report(c.wantOf(Value, &want[0], have[i].Value))
	}
	return slices.Delete(have, i, i+1)
}

func (c *comparison) newest(f transform.Family, want []cell, have []*bigtable.Cell) {
	switch {
	case len(have) > 0:
		c.result.Cells++
		if !c.matches(f, want, have[0].Value) {
			c.report(c.wantOf(Value, &want[0], have[0].Value))
		}
	case f.MaxAge > 0 && !c.options.Now.IsZero():
		c.result.Unproven++ // its age is that of the item's last change, which the source does not tell
	default:
		c.result.Cells++
		c.report(c.wantOf(MissingCell, &want[0], nil))
	}
}

// matches tells whether one of the wanted values is there. An aggregate has seen values before this one, and a
// sketch of distinct values is no value at all: that it is there is all that can be said.
func (c *comparison) matches(f transform.Family, want []cell, have []byte) bool {
	if f.Aggregate == "hll" {
		return true
	}
	if f.Aggregate != "" {
		return slices.ContainsFunc(want, func(w cell) bool { return reached(f.Aggregate, w.value, have) })
	}
	value := keep(have, c.options.ShowValues)
	return slices.ContainsFunc(want, func(w cell) bool {
		if w.asItCame {
			return bytes.Equal(w.value, keep(c.content(have), c.options.ShowValues))
		}
		return bytes.Equal(w.value, value)
	})
}

// content is a document in the one form that the projection has: as it came, its JSON may be in any order. What is no
// document stays as it is, and differs.
func (c *comparison) content(document []byte) []byte {
	c.decoder.Reset()
	img, err := c.decoder.Image(document)
	if err != nil {
		return document
	}
	return img.AppendJSON(nil)
}

func reached(aggregate string, want, have []byte) bool {
	if len(want) != 8 || len(have) != 8 {
		return false
	}
	w, h := int64(binary.BigEndian.Uint64(want)), int64(binary.BigEndian.Uint64(have))
	if strings.HasPrefix(aggregate, "min") {
		return h <= w
	}
	return h >= w
}

func (c *comparison) wantOf(kind Kind, w *cell, have []byte) Difference {
	ms := w.time
	if ms == unmapped {
		ms = 0
	}
	return c.difference(kind, w.row, c.families[w.family].Name, w.qualifier, ms, w.keyHash, w.value, have)
}

func (c *comparison) difference(kind Kind, row []byte, family string, qualifier []byte, ms int64, hash uint64, want, have []byte) Difference {
	d := Difference{Kind: kind, Row: string(row), Family: family, Qualifier: string(qualifier), Time: ms, KeyHash: hash}
	if c.options.ShowValues {
		d.Want, d.Have = bytes.Clone(want), bytes.Clone(have)
	}
	return d
}

func (c *comparison) report(d Difference) {
	c.result.Count++
	if len(c.result.Differences) < c.options.Limit {
		c.result.Differences = append(c.result.Differences, d)
	}
}
