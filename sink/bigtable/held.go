package bigtable

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	"cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

const (
	rowsPerCall  = 100       // of a list of keys, at most
	bytesPerCall = 256 << 10 // of their keys; the service takes 512 KB
	filterBytes  = 12 << 10  // of a filter; the service takes 20 KB, and ours is estimated
)

// HeldRows reads what rows hold of an item: its guards, and the cells of the columns that each of
// rows requests, as a plain reader gets them. The result has one element for each of rows, in their
// order; a row that does not exist has no cells. Only the named ranges are read, because a shared
// row may be far larger than what one item has in it. It blocks while the service is unavailable,
// until ctx ends. Each call takes a slot, as the writes of a copy do.
//
// The rows are read one after the other, so the caller must ensure that there is no other writer of
// the item meanwhile.
func (c *Client) HeldRows(ctx context.Context, target string, item transform.Item, rows []transform.RowRead) (
	[]transform.HeldRow, error) {
	data, err := c.dataClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("read held rows: %w", err)
	}
	limit, held := c.table(target).limit, make([]transform.HeldRow, len(rows))
	for i := range rows {
		held[i].Key = rows[i].Key
	}
	for from := 0; from < len(rows); {
		to := nextCall(rows, from)
		h := holding{table: data.Open(target), item: item, rows: rows[from:to], held: held[from:to]}
		err := limit.Acquire(ctx, ofCopy)
		if err == nil {
			err = h.read(ctx)
			limit.Return(ofCopy)
			c.table(target).countRows(to - from)
		}
		if err != nil {
			return nil, fmt.Errorf("read held rows: %w", orInterrupted(ctx, err))
		}
		from = to
	}
	return held, nil
}

// nextCall returns the end of the rows from from that one call can read: they ask for the same
// columns.
func nextCall(rows []transform.RowRead, from int) int {
	size, to := 0, from
	for to < len(rows) && to-from < rowsPerCall && size+len(rows[to].Key) <= bytesPerCall {
		if to > from && (rows[to].Class != rows[from].Class || !reflect.DeepEqual(rows[to].Families, rows[from].Families)) {
			break
		}
		size += len(rows[to].Key)
		to++
	}
	return to
}

// holding reads rows that ask for the same columns.
type holding struct {
	table *bigtable.Table
	item  transform.Item
	rows  []transform.RowRead
	held  []transform.HeldRow // to be filled
}

// read makes as many calls as the filters need, nearly always one.
func (h *holding) read(ctx context.Context) error {
	list, places := make(bigtable.RowList, len(h.rows)), make(map[string][]int, len(h.rows))
	for i := range h.rows {
		list[i] = string(h.rows[i].Key)
		places[list[i]] = append(places[list[i]], i)
	}
	for _, filter := range h.filters() {
		err := readTwice(ctx, func() (some bool, err error) {
			err = h.table.ReadRows(ctx, list, func(row bigtable.Row) bool {
				some = true
				for _, i := range places[row.Key()] {
					h.take(&h.held[i], row)
				}
				return true
			}, bigtable.RowFilter(filter))
			return some, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *holding) qualifier() string {
	if h.rows[0].Class == transform.ClassR {
		return string(exclusiveQualifier)
	}
	return string(h.item.Guard[:])
}

// filters returns filters that select, together, the guards and the named columns.
func (h *holding) filters() (all []bigtable.Filter) {
	q := h.qualifier()
	parts := []bigtable.Filter{
		newestIn(transform.LiveFamily, q, q+"\x00", 1), newestIn(transform.DeadFamily, q, q+"\x00", 1),
	}
	size := 0
	add := func(family string, r transform.ColumnRange, versions int) {
		if size += len(family) + len(r.From) + len(r.To) + setOverhead; size > filterBytes {
			all, parts, size = append(all, interleave(parts)), nil, 0
		}
		parts = append(parts, newestIn(family, string(r.From), string(r.To), versions))
	}
	for _, f := range h.rows[0].Families {
		if len(f.Ranges) == 0 {
			add(f.Family, transform.ColumnRange{}, f.Versions)
		}
		for _, r := range f.Ranges {
			add(f.Family, r, f.Versions)
		}
	}
	return append(all, interleave(parts))
}

// take copies the guards and cells of a row that was read.
func (h *holding) take(to *transform.HeldRow, row bigtable.Row) {
	to.Live = max(to.Live, newestGuard(row[transform.LiveFamily]))
	to.Dead = max(to.Dead, newestGuard(row[transform.DeadFamily]))
	for _, f := range h.rows[0].Families {
		for _, cell := range row[f.Family] {
			to.Cells = append(to.Cells, transform.HeldCell{
				Family: f.Family, Qualifier: []byte(cell.Column[len(f.Family)+1:]), Value: bytes.Clone(cell.Value),
				Time: cell.Timestamp.Time().UnixMilli(),
			})
		}
	}
}

func newestGuard(cells []bigtable.ReadItem) (v change.Version) {
	for i := range cells {
		v = max(v, change.Version(cells[i].Timestamp.Time().UnixMilli()))
	}
	return v
}
