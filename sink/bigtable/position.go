package bigtable

import (
	"context"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

const (
	positionQualifier = "verify"
	positionFormat    = 1       // the first byte of a stored position
	maxPosition       = 4 << 20 // bytes of one, compressed
)

// StorePosition stores how far the continuous comparison of a table is, beside the table's state.
// The last one counts: where two owners write for a moment, a part of the table is compared twice,
// or was compared by the other one.
func (c *Client) StorePosition(ctx context.Context, pipeline, table string, content []byte) error {
	value := append([]byte{positionFormat}, s2.Encode(nil, content)...)
	if len(value) > maxPosition {
		return fmt.Errorf("store position of %s: it has %d bytes, compressed, and %d are allowed",
			table, len(value), maxPosition)
	}
	column := []byte(positionQualifier)
	write := []op{
		deleteColumn(tableschema.StateFamily, column, 0, 0),
		{kind: opSet, family: tableschema.StateFamily, qualifier: column, value: value},
	}
	r := &request{key: stateKey(pipeline, table), skip: write, body: write}
	var err error
	if r.filter, err = proto.Marshal(columnFilter(positionQualifier)); err == nil {
		err = c.table(tableschema.StateTable).deliver(ctx, r, 0)
	}
	return wrap("store position of "+table, err)
}

// LoadPosition returns what StorePosition stored; nil where nothing is stored, or by a later
// program.
func (c *Client) LoadPosition(ctx context.Context, pipeline, table string) ([]byte, error) {
	value, err := c.readCell(ctx, stateKey(pipeline, table), positionQualifier)
	if err != nil {
		return nil, fmt.Errorf("load position of %s: %w", table, err)
	}
	if len(value) == 0 || value[0] != positionFormat { // Rule 11: it is only a position, so the comparison begins anew
		return nil, nil
	}
	content, err := s2.Decode(nil, value[1:])
	if err != nil {
		return nil, errors.New("load position of " + table + ": it is broken")
	}
	return content, nil
}
