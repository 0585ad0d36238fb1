package bigtable

import (
	"context"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// mappingFormat is the first byte of a kept mapping. Rule 11: a newer one is refused.
const mappingFormat = 1

// maxMapping bounds a kept mapping, compressed; far more than a mapping that somebody wrote.
const maxMapping = 4 << 20

// ErrNoMapping means that no mapping of this hash is kept: the rows were written before mappings were.
var ErrNoMapping = errors.New("no such mapping is kept")

// mappingQualifier is a column of a table's state row for each mapping that the table ever had.
func mappingQualifier(hash string) string { return "mapping:" + hash }

// StoreMapping stores, beside a table's state, the text that the hash is of. Repeating it changes nothing. It is stored
// before the hash is, so that no hash is without its text.
func (c *Client) StoreMapping(ctx context.Context, pipeline, table, hash string, text []byte) error {
	value := append([]byte{mappingFormat}, s2.EncodeBest(nil, text)...)
	if len(value) > maxMapping {
		return fmt.Errorf("keep mapping of %s: it has %d bytes, compressed, and %d are allowed", table, len(value), maxMapping)
	}
	x := &stateCell{key: stateKey(pipeline, table), qualifier: mappingQualifier(hash), value: value}
	_, err := c.setIf(ctx, x, columnFilter(x.qualifier), false)
	return wrap("keep mapping of "+table, err)
}

// LoadMapping returns the text that was kept for a hash; ErrNoMapping if there is none.
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
	return nil, fmt.Errorf("read kept mapping of %s: %w", table, err)
}
