package explain

import (
	"bytes"
	"context"
	"slices"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// stored reads what rows of Bigtable hold of one item.
type stored struct {
	names  *names
	of     guarded.Item
	target verify.Target
	guards *guarded.Guards
	cells  guarded.Cells
	fams   *guarded.Families
	p      *guarded.Projector
	latest change.Version // a guard above it is in the future
	wanted map[string]*wantedRow
	absent bool // nothing was noted that the item should have

	refused bool // the mapping does not take the item, so its rows are as before
}

// wantedRow is what the mapping makes of the item in one row.
type wantedRow struct {
	cells  []guarded.WantedCell
	values [][]byte
}

func newStored(s *pair.Pair, n *names, of guarded.Item) *stored {
	settler := s.Settler()
	tables := settler.Tables
	fams, target := guarded.FamiliesOf(tables), s.Rows()
	x := &stored{
		names: n, of: of, target: target, fams: fams, guards: guarded.NewGuards(target, tables),
		cells: guarded.NewCells(fams), p: guarded.NewProjector(fams, &tables[of.Table]),
		wanted: map[string]*wantedRow{}, absent: true,
	}
	x.cells.Now, x.latest = s.Now(), change.Version(s.Now()+settler.Lead)
	return x
}

// want notes what the mapping makes of the item. An item that it refuses has no rows.
func (x *stored) want(item []byte) error {
	x.absent = false
	rows, err := x.p.Rows(item)
	if err != nil {
		if x.refused = guarded.IsRefusal(err); x.refused {
			return nil
		}
		return err
	}
	for i := range rows {
		w := &wantedRow{}
		for j := range rows[i].Cells {
			w.cells = append(w.cells, x.p.Cell(&rows[i].Cells[j]).Clone())
			w.values = append(w.values, bytes.Clone(rows[i].Cells[j].Value))
		}
		x.wanted[string(rows[i].Key)] = w
	}
	return nil
}

// rowsOf adds the rows that the mapping gives to an image of the item.
func (x *stored) rowsOf(image []byte, into map[string]bool) {
	if image == nil {
		return
	}
	rows, err := x.p.Rows(image)
	if err != nil {
		return // it was refused, so it has no rows
	}
	for i := range rows {
		into[string(rows[i].Key)] = true
	}
}

// read reads rows, and returns those that hold the item, held it, or should hold it.
func (x *stored) read(ctx context.Context, keys []string) (out []StoredRow, err error) {
	next := 0
	compare := func(key string, row *verify.Row) error {
		found, err := x.compare([]byte(key), row)
		if err == nil && found != nil {
			out = append(out, *found)
		}
		return err
	}
	missing := func(until string) error {
		for ; next < len(keys) && keys[next] < until; next++ {
			if err := compare(keys[next], nil); err != nil {
				return err
			}
		}
		return nil
	}
	slices.Sort(keys)
	err = x.target.Lookup(ctx, keys, func(row *verify.Row) error {
		if err := missing(string(row.Key)); err != nil {
			return err
		}
		next++
		return compare(string(row.Key), row)
	})
	if err == nil && len(keys) > 0 {
		err = missing(keys[len(keys)-1] + "\x00")
	}
	return out, err
}

// appliedIn returns the version up to which the changes of an item are in its rows: the newest one
// that a guard names. An item with several rows may have been written to some of them when its
// owner died, so a row that differs counts with its own guard. One that does not differ need not:
// not every change writes every row.
func appliedIn(rows []StoredRow) (applied change.Version) {
	for i := range rows {
		applied = max(applied, rows[i].Guard, rows[i].Deleted)
	}
	for i := range rows {
		if r := &rows[i]; r.differs {
			applied = min(applied, max(r.Guard, r.Deleted))
		}
	}
	return applied
}

func (x *stored) row(key []byte) *StoredRow {
	out := &StoredRow{Cells: []StoredCell{}}
	var whole bool
	if out.Row, whole = x.names.row(key); whole {
		out.RowBase64 = bytes.Clone(key)
	}
	return out
}

// compare compares a row with the item; nil where the row has nothing to do with it. row is nil
// where Bigtable lacks it.
func (x *stored) compare(key []byte, row *verify.Row) (*StoredRow, error) {
	if x.guards.List = x.guards.List[:0]; row != nil {
		x.guards.Read(row)
	}
	w := x.wanted[string(key)]
	want := guarded.ItemWant{Absent: x.absent, Wanted: w != nil}
	if w != nil {
		want.Cells = w.cells
	}
	r, err := x.guards.CompareItem(&x.cells, row, x.of, want, x.latest)
	if err != nil || !want.Wanted && !r.Guarded {
		return nil, err
	}
	out := x.row(key)
	out.Missing, out.Wanted, out.Others, out.differs = row == nil, want.Wanted, r.Others, r.Differs()
	if r.Guarded {
		out.Guard, out.GuardTime, out.Deleted = r.Live, timeOf(r.Live), r.Dead
	}
	out.Sealed = r.Live == 0 && x.guards.Guards(x.of)
	inRow := make([]*StoredCell, len(x.cells.List))
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Have < 0 {
			out.Cells = append(out.Cells, x.lacking(key, w, c.Want, x.stateOf(c.State)))
			continue
		}
		if inRow[c.Have], err = x.held(key, c, w, r.Live); err != nil {
			return nil, err
		}
	}
	for _, cell := range inRow {
		if cell != nil {
			out.Cells = append(out.Cells, *cell)
		}
	}
	return out, nil
}

// held returns a cell of the row that is the item's, or was. written is the version of the item in
// the row.
func (x *stored) held(
	key []byte, c *guarded.ItemCell, w *wantedRow, written change.Version,
) (*StoredCell, error) {
	cell, err := x.cell(key, &x.cells.List[c.Have])
	if cell.State = x.stateOf(c.State); cell.State != CellDiffers {
		return &cell, err
	}
	cell.Want = x.names.value(w.values[c.Want])
	_, _, mapped := w.cells[c.Want].Place(x.fams)
	cell.Outside = mapped == 0 && written > 0 && cell.Version > written
	return &cell, err
}

// stateOf returns the state of a cell by how it compares. What a refused item left in a row is not
// extra: the row is as the last change left it that the mapping took.
func (x *stored) stateOf(o guarded.Outcome) string {
	switch o {
	case guarded.IsEqual:
		return CellEqual
	case guarded.IsOther, guarded.IsShared:
		return CellDiffers
	case guarded.IsMissing:
		return CellMissing
	case guarded.IsAged, guarded.IsTooOld:
		return CellAged
	case guarded.IsOlder:
		return CellOlder
	case guarded.IsKept:
		return CellKept
	case guarded.IsKeptWhileAbsent:
		if x.absent {
			return CellKept
		}
	case guarded.IsExtra, guarded.IsOfOthers:
	}
	if x.refused {
		return CellOutdated
	}
	return CellExtra
}

// cell returns a cell of the row.
func (x *stored) cell(row []byte, h *guarded.Held) (StoredCell, error) {
	_, entry, err := x.guards.Names(x.of, row, h.Family, h.Qualifier)
	v := change.Version(h.Time.UnixMilli())
	return StoredCell{
		Family: h.Family, Qualifier: x.names.column(row, h.Family, h.Qualifier, entry),
		Version: v, Time: timeOf(v), Bytes: len(h.Value), Value: x.names.value(h.Value),
	}, err
}

// lacking returns a cell that the item should have and Bigtable has not.
func (x *stored) lacking(row []byte, w *wantedRow, i int, state string) StoredCell {
	family, qualifier, at := w.cells[i].Place(x.fams)
	return StoredCell{
		Family: family, Qualifier: x.names.column(row, family, qualifier, transform.Entry{}), Version: change.Version(at),
		Time: timeOf(change.Version(at)), State: state, Want: x.names.value(w.values[i]),
	}
}

// keyImage returns the key's attributes.
func keyImage(key []byte) (change.Image, error) {
	var d change.Decoder
	return d.Image(key)
}

// rowsByKey returns the rows that follow from the key alone.
func rowsByKey(p *transform.Program, key []byte) (rows []string) {
	img, err := keyImage(key)
	if err != nil {
		return nil
	}
	steps, err := p.ExplainKey(img)
	if err != nil {
		return nil // the rules look at more than the key
	}
	for i := range steps.Rows {
		rows = append(rows, steps.Rows[i].Row)
	}
	return rows
}
