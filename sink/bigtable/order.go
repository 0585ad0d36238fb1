package bigtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// The order of a copy by workers stands beside the table's state, and so do the beats of its owner.
const (
	orderQualifier = "order"
	beatQualifier  = "order_beat"
	maxOrder       = 4 << 20 // bytes of one, with the mappings of all tables of a target
)

// LoadOrder reads the order of a table's copy, its newest beat, and whether the row permits writes,
// all as of one moment. It makes one attempt. An order of a newer format is an error of type
// *delegation.NewerFormatError.
func (c *Client) LoadOrder(ctx context.Context, pipeline, table string) (*delegation.Seen, error) {
	var cells map[string][]byte
	err := askTwice(ctx, func() (err error) {
		cells, err = c.readCells(ctx, stateKey(pipeline, table), stateQualifier, orderQualifier, beatQualifier)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load order: %w", err)
	}
	o := &delegation.Seen{Held: true}
	if stored := cells[stateQualifier]; stored != nil {
		s, err := decodeState(stored)
		if err != nil {
			return nil, fmt.Errorf("load order: %w", err)
		}
		o.Life, o.Held = s.Life, s.Fenced != nil || s.Recovering
	}
	if stored := cells[orderQualifier]; stored != nil {
		if o.Order, err = delegation.DecodeOrder(stored); err != nil {
			return nil, fmt.Errorf("load order: %w", err)
		}
	}
	if stored := cells[beatQualifier]; stored != nil {
		if o.Beat, err = delegation.DecodeBeat(stored); err != nil {
			return nil, fmt.Errorf("load order: %w", err)
		}
	}
	return o, nil
}

// SwapOrder replaces the order old, nil for none, by next, and reports whether the row holds next
// afterwards. It blocks while the service is unavailable. What may be stored there is decided by
// delegation.Opening and Closing.
//
// The revision is the cell's time, so it stands for the content: a filter may have 20 KB, and an
// order has the mappings of all tables of its target.
func (c *Client) SwapOrder(
	ctx context.Context, pipeline, table string, old, next *delegation.Order,
) (bool, error) {
	value, err := next.Encode()
	if err != nil {
		return false, fmt.Errorf("store order: %w", err)
	}
	if len(value) > maxOrder {
		return false, fmt.Errorf("store order: it has %d bytes, and %d are allowed", len(value), maxOrder)
	}
	predicate, want := columnFilter(orderQualifier), false
	if old != nil {
		predicate, want = chain(predicate, latest(), atTime(old.Revision)), true
	}
	x := &stateCell{key: stateKey(pipeline, table), qualifier: orderQualifier, value: value, time: next.Revision}
	matched, err := c.setIf(ctx, x, predicate, want)
	if err != nil || matched == want {
		return err == nil, wrap("store order", err)
	}
	// An earlier attempt of ours may have stored it, and its reply was lost.
	have, err := backoff.Retry(ctx, func() ([]byte, error) {
		have, err := c.readCell(ctx, x.key, orderQualifier)
		return have, retryError(err)
	}, backoff.WithBackOff(c.newBackOff()), backoff.WithMaxElapsedTime(0))
	return err == nil && bytes.Equal(have, value), wrap("store order", err)
}

// StoreBeat stores a beat beside an order, and reports whether there is one: without it nothing is
// stored. A beat that arrives late hides none with a later date. fresh is asked before each
// attempt, as in Resync: a date that is sent long after it was true would tell workers a wrong
// time.
func (c *Client) StoreBeat(
	ctx context.Context, pipeline, table string, b delegation.Beat, fresh func() error,
) (there bool, err error) {
	value, err := b.Encode()
	if err != nil {
		return false, fmt.Errorf("store beat: %w", err)
	}
	column, date := []byte(beatQualifier), int64(b.Date)
	r := &request{key: stateKey(pipeline, table), fresh: fresh, skip: []op{
		deleteColumn(tableschema.StateFamily, column, 0, date),
		{kind: opSet, family: tableschema.StateFamily, qualifier: column, value: value, from: date},
	}}
	if r.filter, err = proto.Marshal(columnFilter(orderQualifier)); err != nil {
		return false, fmt.Errorf("store beat: encode predicate: %w", err)
	}
	if err := c.table(tableschema.StateTable).deliver(ctx, r, 0); err != nil {
		return false, fmt.Errorf("store beat: %w", err)
	}
	return r.matched, nil
}

// readCells reads the newest cell of some columns of one row of the state table, as of one moment.
// Columns without a cell are left out. It makes one attempt, as readCell does.
func (c *Client) readCells(ctx context.Context, key []byte, qualifiers ...string) (map[string][]byte, error) {
	filters := make([]*btpb.RowFilter, 0, len(qualifiers))
	for _, q := range qualifiers {
		filters = append(filters, chain(columnFilter(q), latest()))
	}
	all := &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: filters}}}
	t := c.table(tableschema.StateTable)
	call, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, t.headers[ofStream]), c.opt.Timeout)
	defer cancel()
	rows, err := btpb.NewBigtableClient(c.conn).ReadRows(call, &btpb.ReadRowsRequest{
		TableName: t.name, AppProfileId: c.opt.AppProfile, RowsLimit: 1, Rows: &btpb.RowSet{RowKeys: [][]byte{key}},
		Filter: all,
	})
	cells, column := map[string][]byte{}, ""
	for err == nil {
		var reply *btpb.ReadRowsResponse
		if reply, err = rows.Recv(); err == nil {
			column = collect(cells, column, reply.Chunks)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	} else if ctx.Err() != nil {
		err = interrupted(ctx, err)
	}
	c.report(tableschema.StateTable, err)
	return cells, err
}

// collect adds the chunks of a reply to the cells of a row, by column. A chunk that names no column
// is of the one before, in this reply or the one before it.
func collect(cells map[string][]byte, column string, chunks []*btpb.ReadRowsResponse_CellChunk) string {
	for _, chunk := range chunks {
		if chunk.Qualifier != nil {
			column = string(chunk.Qualifier.Value)
		}
		if len(chunk.Value) > 0 {
			cells[column] = append(cells[column], chunk.Value...)
		}
		if chunk.GetResetRow() {
			clear(cells)
		}
	}
	return column
}
