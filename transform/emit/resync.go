package emit

import (
	"bytes"
	"errors"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// Resync is one item as it was read from the source table, and what the target's rows hold of it:
// all that is needed to make the item's rows true again without an old image.
type Resync struct {
	Keys    []byte // the key attributes as typed JSON
	Item    []byte // the item as typed JSON; nil: the table has no such item
	Version change.Version
	First   bool      // a first backfill: a row without a guard of the item holds nothing of the item
	Rows    [][]byte  // further rows that may hold the item, from a difference or from its dead letters
	Held    []HeldRow // the rows that RowsToRead asked for, as the target has them
	// Future is the version of a guard in the future, 0 for none. A row that was read and has it is
	// written in any case, even if its cells are correct: the guard must be replaced.
	Future change.Version

	ResyncFound // filled by WriteResync
}

// ResyncFound is what a resync found in the rows that were read. It reports what the write cannot
// repair.
type ResyncFound struct {
	Equal    bool     // rows were read, and nothing needs to be written
	Kept     int      // rows that the item is not in and that remain: the mapping may keep them (on_ttl_expiry: keep)
	Aged     int      // cells that are missing because they are older than the max_age of their family
	Unproven []string // columns that do not show to which item they belong: earlier cells of the item may remain in them
	Wipes    []string // rules with `on_remove: row` that would delete other items' cells with the item: a resync does not
}

// RowRead is a row that a resync must read: its guards of the item, and the named columns. Without
// families it is the guards alone.
type RowRead struct {
	Key      []byte
	Class    ir.Class // R: the guard's qualifier is that of rows with one item
	Families []FamilyRead
}

// FamilyRead is what a resync must read of one family.
type FamilyRead struct {
	Family   string
	Versions int           // newest cells of each column
	Ranges   []ColumnRange // in order, without overlaps; none: all columns
}

// ColumnRange is a range of column qualifiers: those from From (inclusive) to To (exclusive); no
// To: to the end.
type ColumnRange struct{ From, To []byte }

// HeldRow is what a row holds of an item.
type HeldRow struct {
	Key        []byte
	Live, Dead change.Version // the guards of the item; 0: none
	Cells      []HeldCell     // of the columns that were asked for; those of one column together, newest first
}

// HeldCell is one cell of a row.
type HeldCell struct {
	Family    string
	Qualifier []byte
	Value     []byte
	Time      int64 // ms
}

// RowsToRead returns the rows that must be read into r.Held before WriteResync: rows with new
// content that depends on what they hold, and rows that the item may have left. There are none if
// the item's key gives the rows, and writing them as a whole makes them correct. The error is a
// *tmpl.Refusal when the mapping does not take the item.
func RowsToRead(p *ir.Program, d *change.Decoder, r *Resync) ([]RowRead, error) {
	if !p.ReadToResync && len(r.Rows) == 0 && (p.RowsByKey || r.First && r.Item != nil) {
		return nil, nil
	}
	s, err := newResyncer(p, d, r, new(Write))
	if err != nil {
		return nil, err
	}
	if err := s.project(false); err != nil {
		return nil, err
	}
	out := rowReads{}
	for i := range s.now.rows {
		pr := &s.now.rows[i]
		if from := givenBy(s.origins, pr.key); mustRead(from) {
			err = errors.Join(err, out.add(pr.key, from, s.w.mem.eval.Cells[pr.from:pr.to], false, false))
		}
	}
	for _, o := range s.origins {
		if row := o.row(); row != nil && s.mayHaveLeft(o, row) {
			err = errors.Join(err, out.add(row, givenBy(s.origins, row), nil, true, r.Item == nil))
		}
	}
	for _, row := range r.Rows {
		if from := givenBy(s.origins, row); len(from) > 0 && s.rowNow(row) == nil {
			err = errors.Join(err, out.add(row, from, nil, true, r.Item == nil))
		}
	}
	return out, err
}

// mustRead reports whether what a resync writes to a row depends on what the row holds.
func mustRead(from []*origin) bool {
	return slices.ContainsFunc(from, func(o *origin) bool { return o.plan.ReadToResync })
}

// mayHaveLeft reports whether a row that the item's key gives must be read because the item may
// have left it.
func (s *resyncer) mayHaveLeft(o *origin, row []byte) bool {
	switch {
	case s.rowNow(row) != nil:
		return false
	case s.r.Item != nil:
		return !s.r.First // a first copy of a table finds no rows that its items have left: the stream clears those
	}
	return !o.plan.ByKey || o.plan.ReadToResync || o.rule.OnTTL == "keep"
}

// rowReads collects the rows to read, each once.
type rowReads []RowRead

func (rs *rowReads) add(row []byte, from []*origin, now []ir.Emitted, left, absent bool) error {
	if slices.ContainsFunc(*rs, func(r RowRead) bool { return bytes.Equal(r.Key, row) }) {
		return nil
	}
	families, err := reads(from, now, left)
	if err == nil && left && absent && keepAll(from) {
		families, err = readsAll(from)
	}
	*rs = append(*rs, RowRead{Key: row, Class: from[0].plan.Class, Families: families})
	return err
}

// resyncer makes the Write of a resync.
type resyncer struct {
	p       *ir.Program
	d       *change.Decoder
	r       *Resync
	w       *Write
	keys    change.Image
	origins []*origin
	now     projection // empty when the item is absent
	bare    []Row      // of which nothing but the guard is written
}

func newResyncer(p *ir.Program, d *change.Decoder, r *Resync, w *Write) (*resyncer, error) {
	keys, err := w.begin(p, d, r.Keys)
	if err != nil {
		return nil, err
	}
	w.Version, r.ResyncFound = r.Version, ResyncFound{}
	s := &resyncer{p: p, d: d, r: r, w: w, keys: keys}
	if !s.byKey() {
		s.origins = originsOf(p, keys)
	}
	return s, nil
}

// byKey reports whether replacing the item's rows by its key makes them true, whatever they hold.
func (s *resyncer) byKey() bool {
	return s.p.KeyDecidesRule && !s.p.ReadToResync && (s.p.RowsByKey || s.r.First) && s.r.Item != nil &&
		len(s.r.Held) == 0 && len(s.r.Rows) == 0
}

// project projects the item.
func (s *resyncer) project(values bool) (err error) {
	if s.r.Item == nil {
		return nil
	}
	x := projector{p: s.p, m: s.w.mem, d: s.d, keys: s.keys}
	if x.rule, err = ruleOfKey(s.p, &s.w.mem.eval.Eval, s.keys); err == nil {
		s.now, err = x.projectNew(s.change(), values)
	}
	return err
}

// change returns the resync as a change of the item without an old image.
func (s *resyncer) change() *change.Change {
	op := change.Insert
	if s.r.Item == nil {
		op = change.Remove
	}
	return &change.Change{Op: op, Version: s.r.Version, Keys: s.r.Keys, New: s.r.Item}
}

// WriteResync fills w with the write that makes the item's rows correct at r.Version without an old
// image. The write has the rows of the item's projection, and the rows that the item has left: rows
// in r.Held with a guard of the item, and rows that its key gives. The error is a *tmpl.Refusal
// when the mapping does not take the item.
//
// A row that need not be read is replaced as an Insert would replace it. In a row that was read,
// columns that the item no longer has are deleted, and nothing is written where a plain reader
// already gets the item's cells: a repeated cell would push a version out of a history, and restart
// the age of a cell. A row is left as a REMOVE leaves it, except that histories end in an empty
// version only in columns that were read, that nothing is archived, that rows of rules with
// `on_ttl_expiry: keep` remain, because the table does not distinguish an expired item from a
// deleted one (but the guard of an absent item becomes a tombstone if none of its cells are
// visible), and that `on_remove: row` does not delete the cells of other items.
//
// Aggregates are merged again: max, min and hll do not change when they meet the same value twice.
func WriteResync(p *ir.Program, d *change.Decoder, r *Resync, w *Write) error {
	s, err := newResyncer(p, d, r, w)
	if err != nil {
		return err
	}
	if err := s.project(true); err != nil {
		return err
	}
	if !s.byKey() {
		if err := errors.Join(s.addHeldRows(), s.addKeyRows()); err != nil {
			return err
		}
	}
	b := builder{m: w.mem, w: w, now: s.now, last: s.change()}
	if err := b.build(); err != nil {
		return err
	}
	s.finish()
	return nil
}
