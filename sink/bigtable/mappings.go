package bigtable

import (
	"context"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// mappingFormat is the first byte of a stored mapping. Rule 11: a newer one is refused.
const mappingFormat = 1

// maxMapping is the largest size of a stored mapping, compressed; far more than a mapping written
// by hand has.
const maxMapping = 4 << 20

// ErrNoMapping means that no mapping with this hash is stored: the rows are older than stored
// mappings.
var ErrNoMapping = errors.New("no mapping is stored under this hash")

// mappingQualifier returns the column, in a table's state row, of a mapping that the table has or
// had.
func mappingQualifier(hash string) string { return "mapping:" + hash }

// StoreMapping stores the text of a mapping under its hash, beside a table's state. Storing it
// again changes nothing. It must be called before the table's state refers to the hash, so that
// every hash there has its text.
func (c *Client) StoreMapping(ctx context.Context, pipeline, table, hash string, text []byte) error {
	value := append([]byte{mappingFormat}, s2.EncodeBest(nil, text)...)
	if len(value) > maxMapping {
		return fmt.Errorf("store mapping of %s: it has %d bytes, compressed, and %d are allowed",
			table, len(value), maxMapping)
	}
	x := &stateCell{key: stateKey(pipeline, table), qualifier: mappingQualifier(hash), value: value}
	_, err := c.setIf(ctx, x, columnFilter(x.qualifier), false)
	return wrap("store mapping of "+table, err)
}

// LoadMapping returns the text that is stored under a hash; ErrNoMapping if there is none.
func (c *Client) LoadMapping(ctx context.Context, pipeline, table, hash string) ([]byte, error) {
	value, err := c.readCell(ctx, stateKey(pipeline, table), mappingQualifier(hash))
	switch {
	case err != nil:
	case value == nil:
		err = ErrNoMapping
	case len(value) == 0 || value[0] == 0:
		err = errors.New("broken: no format")
	case value[0] > mappingFormat:
		err = &NewerFormatError{Have: int(value[0]), Know: mappingFormat}
	default:
		var text []byte
		if text, err = s2.Decode(nil, value[1:]); err == nil {
			return text, nil
		}
	}
	return nil, fmt.Errorf("load mapping of %s: %w", table, err)
}
