package bigtable

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"cloud.google.com/go/bigtable"
)

// rowsPerRead is how many rows one ReadRows call returns at most: the call is repeated as a whole
// where it breaks.
var rowsPerRead = 10_000

// View selects what an application reads of a family: the newest Versions cells of each column; 0
// means all.
type View struct {
	Family   string
	Versions int
}

// Row is a row as read. Cells are ordered by family (in the order of the views), by qualifier, and
// newest first. It is valid until the callback returns.
type Row struct {
	Key   []byte
	Cells []Cell
}

// Cell is one stored value.
type Cell struct {
	Family    string
	Qualifier []byte
	Value     []byte
	Time      time.Time
}

// Rows reads a table in key order from start (inclusive) to end (exclusive; "": to the last row),
// and calls f with each row that has a cell in one of the views. So a row that has only tombstones
// does not appear. An error of f ends the reading and is returned.
//
// Rows that are written meanwhile may appear in an older state, so rows should be compared while
// nothing is written.
func (c *Client) Rows(ctx context.Context, target, start, end string, views []View, f func(*Row) error) error {
	data, err := c.dataClient(ctx)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	read := c.reading(data, target, views, f)
	var parts *parts
	for next := start; ; {
		to := parts.after(next, end)
		n, last, err := read.batch(ctx, bigtable.NewRange(next, to))
		switch full := n == rowsPerRead; {
		case err != nil:
			return fmt.Errorf("read rows: %w", orInterrupted(ctx, err))
		case !full && to == end:
			return nil
		case !full:
			next = to
			parts.adapt(n)
		case parts == nil:
			parts = partsOf(ctx, read.table)
			next = last + "\x00"
		default:
			next = last + "\x00"
			parts.adapt(n)
		}
	}
}

// reading is one call of Rows.
type reading struct {
	table  *bigtable.Table
	count  func(rows int)
	filter bigtable.ReadOption
	views  []View
	f      func(*Row) error
	row    Row
}

func (c *Client) reading(data *bigtable.Client, target string, views []View, f func(*Row) error) reading {
	return reading{
		table: data.Open(target), count: c.table(target).countRows, filter: bigtable.RowFilter(filterOf(views)),
		views: views, f: f,
	}
}

// batch reads the first rowsPerRead of the rows, and returns their number and the last key.
func (r *reading) batch(ctx context.Context, rows bigtable.RowSet) (n int, last string, err error) {
	var failed error
	err = readTwice(ctx, func() (bool, error) {
		err := r.table.ReadRows(ctx, rows, func(row bigtable.Row) bool {
			n, last = n+1, row.Key()
			failed = r.f(r.convert(row))
			return failed == nil
		}, r.filter, bigtable.LimitRows(int64(rowsPerRead)))
		return n > 0, err
	})
	r.count(n)
	if failed != nil {
		err = failed
	}
	return n, last, err
}

// SplitKeys returns keys that divide the rows of a table into parts of about the same size, in
// order. There may be none. Source:
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#samplerowkeysrequest
func (c *Client) SplitKeys(ctx context.Context, target string) ([]string, error) {
	data, err := c.dataClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("read split keys: %w", err)
	}
	keys, err := data.Open(target).SampleRowKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read split keys: %w", orInterrupted(ctx, err))
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "" }) // the end of the table
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// parts divides a table into parts of about rowsPerRead rows, by keys that Bigtable names as good
// places to split it. Without parts a call reads to the end of what is asked for, and emulators
// collect all these rows before they send the first one: their work for a table would grow with its
// square.
type parts struct {
	keys []string // in order
	step int      // keys in a part
}

// partsOf requests sample row keys of a table. They only save work, so an error is ignored: the
// range is then read in one part. Source:
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#samplerowkeysrequest
func partsOf(ctx context.Context, table *bigtable.Table) *parts {
	keys, err := table.SampleRowKeys(ctx)
	if err != nil {
		keys = nil
	}
	return &parts{keys: slices.Sorted(slices.Values(keys)), step: 1}
}

// after returns the end of the part that begins at start: end at the latest, "" being the end of
// the table.
func (p *parts) after(start, end string) string {
	if p == nil {
		return end
	}
	i := sort.SearchStrings(p.keys, start+"\x00") + p.step - 1
	if i >= len(p.keys) || end != "" && p.keys[i] >= end {
		return end
	}
	return p.keys[i]
}

// adapt makes parts smaller or larger after one that had n rows.
func (p *parts) adapt(n int) {
	switch {
	case n == rowsPerRead:
		p.step = max(p.step/2, 1)
	case n < rowsPerRead/2:
		p.step *= 2
	}
}

// convert copies a row, with its families in the order of the views, into r.row.
func (r *reading) convert(row bigtable.Row) *Row {
	r.row.Key, r.row.Cells = append(r.row.Key[:0], row.Key()...), r.row.Cells[:0]
	for _, view := range r.views {
		for _, item := range row[view.Family] {
			r.row.Cells = append(r.row.Cells, Cell{
				Family:    view.Family,
				Qualifier: []byte(item.Column[len(view.Family)+1:]),
				Value:     item.Value,
				Time:      item.Timestamp.Time(),
			})
		}
	}
	return &r.row
}

// filterOf selects the views by column ranges, because emulators compile a family's regular
// expression for each cell.
func filterOf(views []View) bigtable.Filter {
	families := []bigtable.Filter{}
	for _, v := range views {
		families = append(families, newestIn(v.Family, "", "", v.Versions))
	}
	return interleave(families)
}

// newestIn selects the newest cells of each column of a range, all with 0. start is inclusive and
// end exclusive; "" is the family's end.
func newestIn(family, start, end string, versions int) bigtable.Filter {
	columns := bigtable.ColumnRangeFilter(family, start, end)
	if versions == 0 {
		return columns
	}
	return bigtable.ChainFilters(columns, bigtable.LatestNFilter(versions))
}

// interleave selects what any of the filters selects.
func interleave(filters []bigtable.Filter) bigtable.Filter {
	switch len(filters) {
	case 0:
		return bigtable.BlockAllFilter()
	case 1:
		return filters[0]
	}
	return bigtable.InterleaveFilters(filters...)
}
