package emit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// errNotRead is returned where the caller did not read a row that RowsToRead named.
var errNotRead = errors.New("resync item: a row that must be read first is not in Held")

// addHeldRows adds what the item's rows hold to the earlier projections: what it has no longer is
// then deleted, and rows that it is not in are left.
func (s *resyncer) addHeldRows() error {
	for i := range s.r.Held {
		h := &s.r.Held[i]
		from := givenBy(s.origins, h.Key)
		guarded := h.Live != 0 || h.Dead != 0
		if len(from) == 0 || !guarded && s.rowNow(h.Key) == nil || !guarded && s.r.First {
			continue // nothing shows that the row holds something of the item
		}
		if s.rowNow(h.Key) == nil && h.Live != 0 && keepAll(from) {
			if err := s.addKeptRow(h, from); err != nil {
				return err
			}
			continue
		}
		if err := s.addHeldRow(h, from); err != nil {
			return err
		}
	}
	return nil
}

// addKeptRow leaves a row alone that the item is not in, because an item that expired there is
// kept. If the item is absent and the row has no visible cell of it, its guard becomes a tombstone.
func (s *resyncer) addKeptRow(h *HeldRow, from []*origin) error {
	for _, o := range from {
		if err := o.columns(); err != nil {
			return err
		}
	}
	if s.inFuture(h) {
		s.bare = append(s.bare, Row{Key: h.Key, Class: from[0].plan.Class}) // the guard alone
		return nil
	}
	if s.r.Item == nil && s.isBare(h, from) {
		s.bare = append(s.bare, Row{Key: h.Key, Class: from[0].plan.Class, Left: true})
		return nil
	}
	s.r.Kept++
	return nil
}

// rowNow returns the item's row with a key; nil when the item is not in it.
func (s *resyncer) rowNow(key []byte) *projectedRow {
	for i := range s.now.rows {
		if bytes.Equal(s.now.rows[i].key, key) {
			return &s.now.rows[i]
		}
	}
	return nil
}

// addHeldRow adds one row as an earlier projection for each plan that may have given it.
func (s *resyncer) addHeldRow(h *HeldRow, from []*origin) error {
	x := &s.w.mem.eval
	mark := len(x.Cells)
	var earlier []projection
	cells := 0
	for _, o := range from {
		if err := o.columns(); err != nil {
			return err
		}
		pr := projectedRow{plan: o.plan, key: h.Key, from: len(x.Cells)}
		for i := range h.Cells {
			if c, ok := o.cell(&h.Cells[i]); ok && newest(h.Cells, i) && !o.stays(&c) {
				x.Cells = append(x.Cells, c)
			}
		}
		pr.to = len(x.Cells)
		x.Cells = append(x.Cells, o.fixed...)
		pr.possible = len(x.Cells)
		cells += pr.to - pr.from
		earlier = append(earlier, projection{rule: o.rule, rows: []projectedRow{pr}})
		s.r.Unproven = append(s.r.Unproven, o.unproven()...)
	}
	if s.rowNow(h.Key) == nil && h.Live == 0 && cells == 0 && !s.mayHoldMore(h, from) && !s.inFuture(h) {
		x.Cells = x.Cells[:mark] // left before
		return nil
	}
	s.w.mem.earlier = append(s.w.mem.earlier, earlier...)
	return nil
}

// inFuture reports whether a row has the guard in the future that is to be replaced.
func (s *resyncer) inFuture(h *HeldRow) bool {
	return s.r.Future != 0 && (h.Live == s.r.Future || h.Dead == s.r.Future)
}

// mayHoldMore reports whether a row that the item has left may hold cells of it all the same, which
// were not read: a difference names the row, and what the item owns there is replaced without being
// read. So a cell that came into the row after the item had left it goes, as it would go from the
// row of an item that is there.
func (s *resyncer) mayHoldMore(h *HeldRow, from []*origin) bool {
	named := slices.ContainsFunc(s.r.Rows, func(row []byte) bool { return bytes.Equal(row, h.Key) })
	return named && slices.ContainsFunc(from, func(o *origin) bool { return o.plan.Exclusive || !o.plan.ReadToResync })
}

// newest reports whether a cell is the first, and thus the newest, of its column.
func newest(cells []HeldCell, at int) bool {
	return at == 0 || cells[at].Family != cells[at-1].Family || !bytes.Equal(cells[at].Qualifier, cells[at-1].Qualifier)
}

// addKeyRows adds the rows that need no reading: for an absent item the rows that its key gives,
// and the columns that other rules of the item may have written to its rows.
func (s *resyncer) addKeyRows() error {
	for i := range s.now.rows {
		from := givenBy(s.origins, s.now.rows[i].key)
		if s.held(s.now.rows[i].key) != nil {
			continue
		}
		if mustRead(from) {
			return errNotRead
		}
		for _, o := range from {
			if o.plan != s.now.rows[i].plan {
				if err := s.addByKey(o, s.now.rows[i].key); err != nil {
					return err
				}
			}
		}
	}
	for _, o := range s.origins {
		if s.r.Item != nil || !o.plan.ByKey || o.rule.OnTTL == "keep" {
			continue
		}
		row := o.row()
		switch {
		case row == nil || s.held(row) != nil:
			continue
		case o.plan.ReadToResync:
			return errNotRead
		}
		if err := s.addByKey(o, row); err != nil {
			return err
		}
	}
	return nil
}

// addByKey adds the columns that the item's key decides in a row.
func (s *resyncer) addByKey(o *origin, row []byte) error {
	if err := o.columns(); err != nil {
		return err
	}
	x := &s.w.mem.eval
	pr := projectedRow{plan: o.plan, key: row, from: len(x.Cells), to: len(x.Cells)}
	x.Cells = append(x.Cells, o.fixed...)
	pr.possible = len(x.Cells)
	s.w.mem.earlier = append(s.w.mem.earlier, projection{rule: o.rule, rows: []projectedRow{pr}})
	return nil
}

func (s *resyncer) held(row []byte) *HeldRow {
	for i := range s.r.Held {
		if bytes.Equal(s.r.Held[i].Key, row) {
			return &s.r.Held[i]
		}
	}
	return nil
}

// finish removes from the Write what the rows that were read have already, and reports what the
// Write cannot repair.
func (s *resyncer) finish() {
	rows := s.w.Rows[:0]
	for i := range s.w.Rows {
		row := s.w.Rows[i]
		from := givenBy(s.origins, row.Key)
		if row.Left {
			s.finishLeft(&row, from)
		} else if h := s.held(row.Key); h != nil && s.takeOutEqual(&row, h, from) {
			continue
		}
		rows = append(rows, row)
	}
	rows = append(rows, s.bare...)
	s.w.Rows = rows
	s.r.Equal = len(s.r.Held) > 0 && len(rows) == 0
	slices.Sort(s.r.Unproven)
	s.r.Unproven = slices.Compact(s.r.Unproven)
}

// finishLeft keeps in a wiped row what any of the plans keeps that may have given it.
func (s *resyncer) finishLeft(row *Row, from []*origin) {
	for _, o := range from {
		if row.Exclusive {
			tombstone := s.r.Item == nil && o.rule.OnRemove == "tombstone"
			row.KeepHistory = append(slices.Clip(row.KeepHistory), remainingFamilies(o.plan, tombstone)...)
		}
		if o.plan.WipesOnRemoval && s.r.Item == nil && !slices.Contains(s.r.Wipes, o.rule.Name) {
			s.r.Wipes = append(s.r.Wipes, o.rule.Name)
		}
	}
	slices.Sort(row.KeepHistory)
	row.KeepHistory = slices.Compact(row.KeepHistory)
}

// takeOutEqual compares a row that the item is in with what the row holds. It reports whether a
// plain reader already gets the item's cells: then nothing is written. Otherwise it removes from
// the row the columns with histories that are correct, so that no version is pushed out of them.
// Families with a max_age are written with the rest, as a change would write them: their cells must
// have the time of the guard, because a later resync derives their age from it.
func (s *resyncer) takeOutEqual(row *Row, h *HeldRow, from []*origin) bool {
	pr := s.rowNow(row.Key)
	c := newComparison(s, h, s.w.mem.eval.Cells[pr.from:pr.to])
	equal := h.Live != 0 && h.Live >= h.Dead && !s.inFuture(h) && !c.holdsMore(from)
	same := make([]bool, len(c.now))
	for i := range c.now {
		same[i] = c.same(&c.now[i])
		equal = equal && same[i]
	}
	if equal {
		s.r.Aged += c.aged
		return true
	}
	cells := row.Cells[:0]
	for i := range row.Cells {
		if i >= len(c.now) || !same[i] || !c.now[i].By.KeepsVersions(c.now[i].Family) || c.now[i].Family.MaxAge > 0 {
			cells = append(cells, row.Cells[i])
		}
	}
	row.Cells = cells
	return false
}

// comparison compares what the item has in a row with what the row holds.
type comparison struct {
	s       *resyncer
	now     []ir.Emitted
	held    *HeldRow
	columns map[string]int // the newest held cell of each column
	names   map[string]bool
	aged    int
}

func newComparison(s *resyncer, h *HeldRow, now []ir.Emitted) *comparison {
	c := &comparison{s: s, now: now, held: h, columns: map[string]int{}, names: map[string]bool{}}
	for i := range h.Cells {
		if newest(h.Cells, i) {
			c.columns[h.Cells[i].Family+":"+string(h.Cells[i].Qualifier)] = i
		}
	}
	for i := range now {
		c.names[now[i].ColumnKey()] = true
	}
	return c
}

// holdsMore reports whether the row holds a cell of the item that the item has no longer.
func (c *comparison) holdsMore(from []*origin) bool {
	for i := range c.held.Cells {
		for _, o := range from {
			e, ok := o.cell(&c.held.Cells[i])
			if ok && newest(c.held.Cells, i) && !c.names[e.ColumnKey()] && !o.stays(&e) {
				return true
			}
		}
	}
	return false
}

// same reports whether a plain reader gets the correct value of a cell. A cell that shares its
// column with other items, and the elements of a list as versions, were not read: they are written
// again, which changes nothing in them.
func (c *comparison) same(n *ir.Emitted) bool {
	if n.By.Time.Siblings || n.By.Versions() {
		return false
	}
	if i, ok := c.columns[n.ColumnKey()]; ok {
		h := &c.held.Cells[i]
		if n.By.Aggregate() {
			return includes(n.Family.Aggregate, h.Value, n.Value)
		}
		return sameValue(n, h) && (!n.Mapped || n.Time == h.Time)
	}
	if c.mayHaveAged(n) {
		c.aged++
		return true
	}
	return false
}

// agedSlack is how much earlier than its max_age a missing cell counts as aged. A resync's version
// is the time of the reading less a margin, its put comes minutes later, and a cell that is written
// again then would have its whole age before it.
const agedSlack = 10 * time.Minute

// mayHaveAged reports whether a cell without a time of the mapping may be missing because of its
// age, which began with the item's last write to the row.
func (c *comparison) mayHaveAged(n *ir.Emitted) bool {
	f := n.Family
	if !f.Ages() || n.Mapped || c.held.Live == 0 {
		return false
	}
	ends := int64(c.held.Live) + f.MaxAge.Milliseconds()
	return ends <= int64(c.s.r.Version)+agedSlack.Milliseconds()
}

// sameValue compares values. Documents as DynamoDB sent them may differ in their bytes and be the
// same.
func sameValue(n *ir.Emitted, h *HeldCell) bool {
	if bytes.Equal(n.Value, h.Value) {
		return true
	}
	if !n.By.RawJSON {
		return false
	}
	var d change.Decoder
	a, errA := d.Image(n.Value)
	b, errB := d.Image(h.Value)
	return errA == nil && errB == nil && bytes.Equal(a.AppendJSON(nil), b.AppendJSON(nil))
}

// includes reports whether an aggregate certainly includes a value. A sketch of distinct values
// does not tell.
func includes(kind string, have, value []byte) bool {
	if len(have) != 8 || len(value) != 8 {
		return false
	}
	h, v := int64(binary.BigEndian.Uint64(have)), int64(binary.BigEndian.Uint64(value))
	return kind == "max" && h >= v || kind == "min" && h <= v
}

// isBare reports whether a row that was read, and that an absent item is kept in, shows no cell of
// it. Where columns do not show to which item they belong, any cell may be the item's, so such a
// row never counts as bare.
func (s *resyncer) isBare(h *HeldRow, from []*origin) bool {
	for _, o := range from {
		if !o.plan.Exclusive && slices.ContainsFunc(o.plan.Emitters, func(e *ir.Emitter) bool {
			return !e.FromKey && !e.Aggregate() && whyUnowned(e) != "" || e.Time.Siblings || e.Aggregate()
		}) {
			return false
		}
	}
	for i := range h.Cells {
		c := &h.Cells[i]
		visible := func(o *origin) bool {
			if e, ok := o.cell(c); ok {
				return !agedAt(e.Family, c.Time, int64(s.r.Version))
			}
			return o.plan.Exclusive
		}
		if slices.ContainsFunc(from, visible) {
			return false
		}
	}
	return true
}
