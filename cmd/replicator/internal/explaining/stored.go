package explaining

import (
	"bytes"
	"context"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/sides"
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
	wanted map[string]*wantedRow
	absent bool // nothing was noted that the item should have
}

// wantedRow is what the mapping makes of the item in one row.
type wantedRow struct {
	cells  []guarded.WantedCell
	values [][]byte
}

func newStored(s *sides.Sides, n *names, of guarded.Item) *stored {
	tables := s.Settler().Tables
	fams, target := guarded.FamiliesOf(tables), s.Rows()
	x := &stored{
		names: n, of: of, target: target, fams: fams, guards: guarded.NewGuards(target, tables),
		cells: guarded.NewCells(fams), p: guarded.NewProjector(fams, &tables[of.Table]),
		wanted: map[string]*wantedRow{}, absent: true,
	}
	x.cells.Now = s.Now()
	return x
}

// want notes what the mapping makes of the item. An item that it refuses has no rows.
func (x *stored) want(item []byte) error {
	x.absent = false
	rows, err := x.p.Rows(item)
	if err != nil {
		if guarded.IsRefusal(err) {
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
	missing := func(until string) {
		for ; next < len(keys) && keys[next] < until; next++ {
			if row := x.missing(keys[next]); row != nil {
				out = append(out, *row)
			}
		}
	}
	slices.Sort(keys)
	err = x.target.Lookup(ctx, keys, func(row *verify.Row) error {
		missing(string(row.Key))
		next++
		found, err := x.compare(row)
		if err != nil || found == nil {
			return err
		}
		out = append(out, *found)
		return nil
	})
	if len(keys) > 0 {
		missing(keys[len(keys)-1] + "\x00")
	}
	return out, err
}

// appliedIn returns the version up to which the changes of an item are in its rows: the newest one that a guard names.
// An item with several rows may have been written to some of them when its owner died, so a row that differs counts
// with its own guard. One that does not differ need not: not every change writes every row.
func appliedIn(rows []StoredRow) (applied change.Version) {
	for i := range rows {
		applied = max(applied, rows[i].Guard, rows[i].Deleted)
	}
	for i := range rows {
		if r := &rows[i]; r.differs() {
			applied = min(applied, max(r.Guard, r.Deleted))
		}
	}
	return applied
}

// missing returns a row that Bigtable lacks; nil where the item should not have it either.
func (x *stored) missing(key string) *StoredRow {
	w := x.wanted[key]
	if w == nil {
		return nil
	}
	out := x.row([]byte(key))
	out.Missing, out.Wanted = true, true
	for i := range w.cells {
		out.Cells = append(out.Cells, x.lacking([]byte(key), w, i, cellMissing))
	}
	return out
}

func (x *stored) row(key []byte) *StoredRow {
	out := &StoredRow{Cells: []StoredCell{}}
	var whole bool
	if out.Row, whole = x.names.row(key); whole {
		out.RowBase64 = bytes.Clone(key)
	}
	return out
}

// compare compares a row with the item; nil where the row has nothing to do with it.
func (x *stored) compare(row *verify.Row) (*StoredRow, error) {
	x.guards.Read(row)
	x.cells.Load(row)
	w, g := x.wanted[string(row.Key)], x.guards.Find(x.of)
	if w == nil && !g.Guarded {
		return nil, nil
	}
	out := x.row(row.Key)
	written := g.Live
	if out.Wanted = w != nil; g.Guarded {
		out.Guard, out.GuardTime, out.Deleted = g.Live, timeOf(g.Live), g.Dead
	}
	out.Sealed = g.Live == 0 && x.guards.Guards(x.of)
	if x.absent && g.Live > 0 {
		var err error
		if out.kept, err = x.guards.Keeps(x.of); err != nil {
			return nil, err
		}
	}
	states := make([]string, len(x.cells.List))
	wants, timed := make([]string, len(x.cells.List)), make([]bool, len(x.cells.List))
	for i := 0; w != nil && i < len(w.cells); i++ {
		switch result, at := x.cells.Compare(&w.cells[i], written); {
		case result == guarded.IsMissing:
			out.Cells = append(out.Cells, x.lacking(row.Key, w, i, cellMissing))
		case result == guarded.IsOther:
			x.cells.Explain(at)
			_, _, mapped := w.cells[i].Place(x.fams)
			states[at], wants[at], timed[at] = cellDiffers, x.names.value(w.values[i]), mapped != 0
		case !x.inColumn(at, &w.cells[i]):
			out.Cells = append(out.Cells, x.lacking(row.Key, w, i, cellAged))
		default:
			states[at] = cellEqual
		}
	}
	for i := range x.cells.List {
		h := &x.cells.List[i]
		state, err := x.stateOf(states[i], h, g.Live > 0, row.Key)
		if err != nil {
			return nil, err
		}
		if state == "" {
			out.Others++
			continue
		}
		cell, err := x.cell(row.Key, h)
		if err != nil {
			return nil, err
		}
		cell.State, cell.Want = state, wants[i]
		cell.Outside = state == cellDiffers && !timed[i] && written > 0 && cell.Version > written
		out.Cells = append(out.Cells, cell)
	}
	return out, nil
}

// differs reports whether the row is not as it should be.
func (r *StoredRow) differs() bool {
	if r.kept {
		return false
	}
	wrong := func(c StoredCell) bool {
		return c.State == cellDiffers || c.State == cellMissing || c.State == cellExtra
	}
	guards := r.Guard > 0 || r.Wanted && r.Sealed // as verify judges it
	return r.Wanted != guards || slices.ContainsFunc(r.Cells, wrong)
}

// inColumn reports whether a cell of the row is in the column of a wanted one.
func (x *stored) inColumn(at int, w *guarded.WantedCell) bool {
	family, qualifier, _ := w.Place(x.fams)
	if at >= len(x.cells.List) {
		return false
	}
	h := &x.cells.List[at]
	return h.Family == family && bytes.Equal(h.Qualifier, qualifier)
}

// stateOf returns the state of a cell; "" for one that is not known to be the item's.
func (x *stored) stateOf(known string, h *guarded.Held, live bool, row []byte) (string, error) {
	switch {
	case known != "":
		return known, nil
	case h.Explained():
		return cellOlder, nil
	}
	s, err := x.guards.StandingOf(x.of, row, h)
	if err != nil || s.Code == guarded.CellForeign || s.Code == guarded.CellMaybe {
		return "", err
	}
	switch {
	case x.cells.Expired(h):
		return cellAged, nil
	case s.Code == guarded.CellKept || s.Code == guarded.CellKeptWhileAbsent && x.absent && live:
		return cellKept, nil
	}
	return cellExtra, nil
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
