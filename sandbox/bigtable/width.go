package bigtable

import (
	"context"
	"strings"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// maxWidth is how many columns a row may have, how many versions a column, and how many cells of a row one call may
// set. The service has no limit of the first two, and takes 100,000 mutations. The emulator sorts all column names of a
// row for each one that is added, and again for each that a filter of several interleaved ones lets pass, and all
// versions of a column for each that is added: with tens of thousands, a single call keeps its table locked for minutes.
const maxWidth = 10_000

// widths holds for each row an upper bound of its width, which is the number of its columns or the number of versions
// in one of them, whichever is larger. Writes add to the bound; a row is counted only when its bound passes maxWidth.
type widths struct {
	mu    sync.Mutex
	bound map[string]int
}

// mayPass reports whether a row could be wider than maxWidth once so many cells are set. What sets none may always pass.
func (w *widths) mayPass(key []byte, cells int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cells > 0 && w.bound[string(key)]+cells > maxWidth
}

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

// counted replaces a row's bound by its width.
func (w *widths) counted(key []byte, width int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound == nil {
		w.bound = map[string]int{}
	}
	w.bound[string(key)] = width
}

// cellsSet returns how many cells mutations set, at most.
func cellsSet(ms []*btpb.Mutation) (n int) {
	for _, m := range ms {
		if m.GetSetCell() != nil || m.GetAddToCell() != nil || m.GetMergeToCell() != nil {
			n++
		}
	}
	return n
}

// checkWidth refuses mutations that would make a row wider than maxWidth, and brings the row's bound up to date. coming
// is how many cells others of the same call set there. The caller holds the table's lock alone.
func (f *Front) checkWidth(
	ctx context.Context, name string, t *table, key []byte, coming int, branches ...[]*btpb.Mutation,
) error {
	for _, ms := range branches {
		if cells := cellsSet(ms) + coming; cells > maxWidth {
			return bad("Write of %d cells of one row is larger than the sandbox's emulator takes: the limit is %d", cells, maxWidth)
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
	t.widths.counted(key, row.width()+coming)
	if width := row.width() + coming; len(branches) == 0 && width > maxWidth {
		return tooWide(width)
	}
	for _, ms := range branches {
		after := row
		if len(branches) > 1 {
			after = row.clone()
		}
		if width := after.apply(ms) + coming; width > maxWidth {
			return tooWide(width)
		}
	}
	return nil
}

func tooWide(width int) error {
	return bad("Row of %d columns, or versions of a column, is larger than the sandbox's emulator takes: the limit is %d",
		width, maxWidth)
}

// rowCells are the timestamps of a row's cells, by column.
type rowCells map[string]map[int64]bool

func columnKey(family string, qualifier []byte) string { return family + "\x00" + string(qualifier) }

func (r rowCells) set(family string, qualifier []byte, ts int64) (versions int) {
	key := columnKey(family, qualifier)
	if r[key] == nil {
		r[key] = map[int64]bool{}
	}
	r[key][ts] = true
	return len(r[key])
}

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

// apply applies mutations to the cells and returns how wide the row got on the way.
func (r rowCells) apply(ms []*btpb.Mutation) (widest int) {
	for i, m := range ms {
		switch x := m.Mutation.(type) {
		case *btpb.Mutation_SetCell_:
			ts := x.SetCell.TimestampMicros
			if ts < 0 { // the server's time, which is another one each time
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
			r.deleteRange(columnKey(x.DeleteFromColumn.FamilyName, x.DeleteFromColumn.ColumnQualifier), x.DeleteFromColumn.TimeRange)
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
