package bigtable

import (
	"context"
	"strings"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// maxWidth limits the columns of a row, the versions of a column, and the cells of a row that one
// call sets. The service has no limit for the first two and takes 100,000 mutations. The emulator
// sorts all column names of a row for each column that is added, again for each that an interleaved
// filter lets pass, and all versions of a column for each one that is added: with tens of thousands
// of them, one call would keep its table locked for minutes.
const maxWidth = 10_000

// widths has an upper bound of each row's width. The width is the number of columns, or the number
// of versions in one of them, whichever is larger. Writes add to the bound; a row is read and
// counted only when its bound passes maxWidth.
type widths struct {
	mu    sync.Mutex
	bound map[string]int // by row key
}

// mayExceed reports whether a row could be wider than maxWidth after a write of that many cells.
func (w *widths) mayExceed(key []byte, cells int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cells > 0 && w.bound[string(key)]+cells > maxWidth
}

// add adds the cells of a write to a row's bound.
func (w *widths) add(key []byte, cells int) {
	if cells == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound == nil {
		w.bound = map[string]int{}
	}
	w.bound[string(key)] += cells
}

// counted replaces a row's bound by its counted width.
func (w *widths) counted(key []byte, width int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound == nil {
		w.bound = map[string]int{}
	}
	w.bound[string(key)] = width
}

// cellsSet returns the most cells that mutations may set.
func cellsSet(ms []*btpb.Mutation) (n int) {
	for _, m := range ms {
		if m.GetSetCell() != nil || m.GetAddToCell() != nil || m.GetMergeToCell() != nil {
			n++
		}
	}
	return n
}

// checkWidth refuses mutations that would make a row wider than maxWidth, and updates the row's
// bound. others is the number of cells that other entries of the same call set in the row. The
// caller holds the table's lock exclusively.
func (f *Front) checkWidth(
	ctx context.Context, name string, t *table, key []byte, others int, branches ...[]*btpb.Mutation,
) error {
	for _, ms := range branches {
		if cells := cellsSet(ms) + others; cells > maxWidth {
			return invalidArgument(
				"Write of %d cells of one row is larger than the sandbox's emulator takes: the limit is %d", cells, maxWidth)
		}
	}
	row := rowCells{}
	req := &btpb.ReadRowsRequest{TableName: name, Rows: &btpb.RowSet{RowKeys: [][]byte{key}},
		Filter: &btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}}}
	err := f.scan(ctx, req, func(_ []byte, cols []column) error {
		for _, c := range cols {
			for _, ts := range c.stamps {
				row.set(c.family, c.qualifier, ts)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.widths.counted(key, row.width()+others)
	if width := row.width() + others; len(branches) == 0 && width > maxWidth {
		return tooWide(width)
	}
	for _, ms := range branches {
		after := row
		if len(branches) > 1 {
			after = row.clone()
		}
		if width := after.apply(ms) + others; width > maxWidth {
			return tooWide(width)
		}
	}
	return nil
}

// tooWide returns the error for a row of that width.
func tooWide(width int) error {
	return invalidArgument(
		"Row of %d columns, or versions of a column, is larger than the sandbox's emulator takes: the limit is %d",
		width, maxWidth)
}

// rowCells has the timestamps of a row's cells, by column.
type rowCells map[string]map[int64]bool

// columnKey returns the key of a column in rowCells.
func columnKey(family string, qualifier []byte) string { return family + "\x00" + string(qualifier) }

// set adds a cell and returns how many versions its column has.
func (r rowCells) set(family string, qualifier []byte, ts int64) (versions int) {
	key := columnKey(family, qualifier)
	if r[key] == nil {
		r[key] = map[int64]bool{}
	}
	r[key][ts] = true
	return len(r[key])
}

// width returns the number of columns, or of versions in the longest column if that is larger.
func (r rowCells) width() int {
	width := len(r)
	for _, stamps := range r {
		width = max(width, len(stamps))
	}
	return width
}

func (r rowCells) clone() rowCells {
	out := make(rowCells, len(r))
	for key, stamps := range r {
		out[key] = make(map[int64]bool, len(stamps))
		for ts := range stamps {
			out[key][ts] = true
		}
	}
	return out
}

// apply applies mutations to the cells and returns the largest width on the way.
func (r rowCells) apply(ms []*btpb.Mutation) (widest int) {
	for i, m := range ms {
		switch x := m.Mutation.(type) {
		case *btpb.Mutation_SetCell_:
			ts := x.SetCell.TimestampMicros
			if ts < 0 { // the server assigns a time of its own to each
				ts = -1 - int64(i)
			}
			widest = max(widest, r.set(x.SetCell.FamilyName, x.SetCell.ColumnQualifier, ts))
		case *btpb.Mutation_AddToCell_:
			add := x.AddToCell
			widest = max(widest, r.set(add.FamilyName, add.ColumnQualifier.GetRawValue(), add.Timestamp.GetRawTimestampMicros()))
		case *btpb.Mutation_MergeToCell_:
			add := x.MergeToCell
			widest = max(widest, r.set(add.FamilyName, add.ColumnQualifier.GetRawValue(), add.Timestamp.GetRawTimestampMicros()))
		case *btpb.Mutation_DeleteFromColumn_:
			r.deleteRange(columnKey(x.DeleteFromColumn.FamilyName, x.DeleteFromColumn.ColumnQualifier),
				x.DeleteFromColumn.TimeRange)
		case *btpb.Mutation_DeleteFromFamily_:
			for key := range r {
				if strings.HasPrefix(key, x.DeleteFromFamily.FamilyName+"\x00") {
					delete(r, key)
				}
			}
		case *btpb.Mutation_DeleteFromRow_:
			clear(r)
		}
		widest = max(widest, len(r))
	}
	return widest
}

// deleteRange deletes the cells of a column within a time range; a zero end is open.
func (r rowCells) deleteRange(key string, within *btpb.TimestampRange) {
	from, to := within.GetStartTimestampMicros(), within.GetEndTimestampMicros()
	for ts := range r[key] {
		if ts >= from && (to == 0 || ts < to) {
			delete(r[key], ts)
		}
	}
	if len(r[key]) == 0 {
		delete(r, key)
	}
}
