package bigtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// GuardedRow is a row with its guards: one cell for each item that is in the row, or was. GuardOf
// reads their values. Rows of tombstones alone are among those read where Dead is asked for. It is
// valid until the callback returns.
type GuardedRow struct {
	Key        []byte
	Cells      []Cell // of the views, as in Row
	Live, Dead []Cell // by qualifier; the version of a guard is its time
}

// GuardedRead selects rows and what is read of them.
type GuardedRead struct {
	Start, End string   // as in Rows
	Keys       []string // if not nil, these rows instead of a range; in the order of their keys
	Views      []View
	Dead       bool // read _tr_dead too
}

// GuardedRows is Rows with the guards of each row.
func (c *Client) GuardedRows(ctx context.Context, target string, read GuardedRead, f func(*GuardedRow) error) error {
	views := append(append([]View{}, read.Views...), View{transform.LiveFamily, 1})
	if read.Dead {
		views = append(views, View{transform.DeadFamily, 1})
	}
	var g GuardedRow
	split := func(row *Row) error {
		g.Key, g.Cells, g.Live, g.Dead = row.Key, row.Cells, nil, nil
		cut := func(family string) (cells []Cell) {
			for i := range g.Cells {
				if g.Cells[i].Family == family {
					g.Cells, cells = g.Cells[:i], g.Cells[i:]
					return cells
				}
			}
			return nil
		}
		g.Dead = cut(transform.DeadFamily) // the views of the guards are the last ones
		g.Live = cut(transform.LiveFamily)
		return f(&g)
	}
	if read.Keys == nil {
		return c.Rows(ctx, target, read.Start, read.End, views, split)
	}
	return c.listedRows(ctx, target, read.Keys, views, split)
}

// listedRows is Rows for a list of rows.
func (c *Client) listedRows(ctx context.Context, target string, keys []string, views []View, f func(*Row) error) error {
	data, err := c.dataClient(ctx)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	read := c.reading(data, target, views, f)
	for keys = slices.Sorted(slices.Values(keys)); len(keys) > 0; {
		n, size := 0, 0
		for n < len(keys) && n < rowsPerRead && size+len(keys[n]) <= bytesPerCall {
			size += len(keys[n])
			n++
		}
		if _, _, err := read.batch(ctx, bigtable.RowList(keys[:n])); err != nil {
			return fmt.Errorf("read rows: %w", orInterrupted(ctx, err))
		}
		keys = keys[n:]
	}
	return nil
}

// RowsNaming reads a whole table once, and calls f with each row that has one of the items in its
// _tr_live, and the item's index. It serves items with row keys that cannot be computed from their
// keys. unknown counts the guards that are sealed with a secret that this client does not have.
// Each of them may name one of the items.
func (c *Client) RowsNaming(ctx context.Context, target string, items []transform.Item,
	f func(item int, row []byte) error) (unknown int, err error) {
	shared, keys := make(map[string]int, len(items)), make(map[string]int, len(items))
	for i := range items {
		shared[string(items[i].Guard[:])] = i
		keys[items[i].Table+"\x00"+string(items[i].Key)] = i
	}
	err = c.Rows(ctx, target, "", "", []View{{transform.LiveFamily, 1}}, func(row *Row) error {
		for j := range row.Cells {
			cell := &row.Cells[j]
			i, named := shared[string(cell.Qualifier)]
			if !named && bytes.Equal(cell.Qualifier, exclusiveQualifier) {
				g, err := c.GuardOf(cell.Value, row.Key, cell.Qualifier)
				switch {
				case err != nil:
					continue // no build has written it: it names nothing
				case g.Unknown:
					unknown++
					continue
				case g.Pipeline != c.opt.Pipeline:
					continue
				}
				i, named = keys[g.Table+"\x00"+string(g.Key)]
			}
			if named {
				if err := f(i, row.Key); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return unknown, err
}

// HighestGuard reads the guards of a whole table, and returns the highest version among them and
// the pipelines that they name, in order. "" stands for guards that name none here: they are sealed
// with a secret that is not known, or broken.
func (c *Client) HighestGuard(ctx context.Context, target string) (change.Version, []string, error) {
	return c.surveyGuards(ctx, target, 0)
}

// ForeignGuards returns the pipelines other than Options.Pipeline that have guards in the table, ""
// as in HighestGuard. It reads the first limit rows that have guards, and the whole table if limit
// is 0.
func (c *Client) ForeignGuards(ctx context.Context, target string, limit int) ([]string, error) {
	_, pipelines, err := c.surveyGuards(ctx, target, limit)
	return slices.DeleteFunc(pipelines, func(p string) bool { return p == c.opt.Pipeline }), err
}

var errEnough = errors.New("enough rows were read")

// surveyGuards reads the guards of the first limit rows, or of all with 0.
func (c *Client) surveyGuards(ctx context.Context, target string, limit int) (highest change.Version,
	pipelines []string, err error) {
	names, n := map[string]bool{}, 0
	views := []View{{transform.LiveFamily, 1}, {transform.DeadFamily, 1}}
	err = c.Rows(ctx, target, "", "", views, func(row *Row) error {
		for i := range row.Cells {
			cell := &row.Cells[i]
			highest = max(highest, change.Version(cell.Time.UnixMilli()))
			g, err := c.GuardOf(cell.Value, row.Key, cell.Qualifier)
			if err != nil {
				g.Pipeline = ""
			}
			names[g.Pipeline] = true
		}
		if n++; n == limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return highest, slices.Sorted(maps.Keys(names)), err
}
