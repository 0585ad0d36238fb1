package bigtable

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// fileMarksKey is the key of one row with the marks of files of an order. It begins with the
// separator of stateKey, as targetKey does. Rows are numbered with six digits, so that they are
// ordered: a million rows have the marks of a billion files.
func fileMarksKey(o *delegation.Order, row int) []byte {
	return fmt.Appendf(nil, "#marks#%s#%s#%s#%06d", o.Pipeline, o.Table, o.ID, row)
}

// StoreFileMark stores the mark of a file of an order, every item of which is durable. Two marks of
// one file prove the same, so the last one counts. fresh is asked before each attempt, as in
// Resync.
//
// Rule 1: a mark never passes a change that is not durable. The caller stores it after the last
// write of the file was answered.
func (c *Client) StoreFileMark(
	ctx context.Context, o *delegation.Order, file int, m delegation.FileMark, fresh func() error,
) error {
	m.Order = o.ID
	value, err := m.Encode()
	if err != nil {
		return fmt.Errorf("store mark of file %d: %w", file, err)
	}
	column := []byte(strconv.Itoa(file))
	write := []op{
		deleteColumn(tableschema.StateFamily, column, 0, 0),
		{kind: opSet, family: tableschema.StateFamily, qualifier: column, value: value},
	}
	r := &request{
		key: fileMarksKey(o, delegation.RowOf(file)), skip: write, body: write, of: ofCopy, fresh: fresh,
	}
	if r.filter, err = proto.Marshal(columnFilter(string(column))); err != nil {
		return fmt.Errorf("store mark of file %d: encode predicate: %w", file, err)
	}
	return wrap(fmt.Sprintf("store mark of file %d", file), c.table(tableschema.StateTable).deliver(ctx, r, 0))
}

// LoadFileMarks calls f with the marks of the wanted files of one row of marks, in no particular
// order; nil wants all. Marks of another order are left out. An error of f ends it and is returned.
func (c *Client) LoadFileMarks(
	ctx context.Context, o *delegation.Order, row int, wanted func(file int) bool,
	f func(file int, m *delegation.FileMark) error,
) error {
	key := string(fileMarksKey(o, row))
	view := []View{{Family: tableschema.StateFamily, Versions: 1}}
	err := c.Rows(ctx, tableschema.StateTable, key, key+"\x00", view, func(r *Row) error {
		for i := range r.Cells {
			file, err := strconv.Atoi(string(r.Cells[i].Qualifier))
			if err != nil || file < 0 || delegation.RowOf(file) != row {
				continue // no mark
			}
			if wanted != nil && !wanted(file) {
				continue
			}
			m, err := delegation.DecodeFileMark(r.Cells[i].Value)
			if err != nil {
				return err
			}
			if !m.Of(o.ID) {
				continue
			}
			if err := f(file, m); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap("load marks of files", err)
}

// FileMark returns the mark of one file of an order; nil if there is none. It makes one attempt.
func (c *Client) FileMark(ctx context.Context, o *delegation.Order, file int) (*delegation.FileMark, error) {
	stored, err := c.readCell(ctx, fileMarksKey(o, delegation.RowOf(file)), strconv.Itoa(file))
	if stored == nil || err != nil {
		return nil, wrap("load mark of a file", err)
	}
	m, err := delegation.DecodeFileMark(stored)
	if err != nil || !m.Of(o.ID) {
		return nil, wrap("load mark of a file", err)
	}
	return m, nil
}

// RemoveFileMarks deletes all marks of an order that is closed, and that the log has taken over. A
// mark that arrives later stays, and counts for no other order.
func (c *Client) RemoveFileMarks(ctx context.Context, o *delegation.Order) error {
	for row := range delegation.Rows(o.Export.Files) {
		drop := []op{{kind: opDeleteRow}}
		r := &request{key: fileMarksKey(o, row), skip: drop, body: drop}
		var err error
		if r.filter, err = proto.Marshal(columnFilter(orderQualifier)); err != nil {
			return fmt.Errorf("remove marks of files: encode predicate: %w", err)
		}
		if err := c.table(tableschema.StateTable).deliver(ctx, r, 0); err != nil {
			return fmt.Errorf("remove marks of files: %w", err)
		}
	}
	return nil
}
