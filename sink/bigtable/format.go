package bigtable

import (
	"bytes"
	"context"
)

const formatQualifier = "format"

// formatKey begins with the separator of stateKey, as targetKey does: it differs from the keys of
// all other rows.
func formatKey(pipeline string) []byte { return []byte("#format#" + pipeline) }

// LoadFormat reads the row of a pipeline that names the format of its logs, in one attempt; nil if
// there is none.
func (c *Client) LoadFormat(ctx context.Context, pipeline string) ([]byte, error) {
	stored, err := c.readCell(ctx, formatKey(pipeline), formatQualifier)
	return stored, wrap("load format of pipeline "+pipeline, err)
}

// SwapFormat replaces that row's content old, nil for none, by next, and reports whether the row
// holds next afterwards. It blocks while the service is unavailable.
func (c *Client) SwapFormat(ctx context.Context, pipeline string, old, next []byte) (bool, error) {
	predicate, want := columnFilter(formatQualifier), false
	if old != nil {
		predicate, want = cellValue(formatQualifier, old), true
	}
	x := &stateCell{key: formatKey(pipeline), qualifier: formatQualifier, value: next}
	if _, err := c.setIf(ctx, x, predicate, want); err != nil {
		return false, wrap("store format of pipeline "+pipeline, err)
	}
	have, err := c.LoadFormat(ctx, pipeline) // an earlier attempt, whose reply was lost, may have stored it
	return bytes.Equal(have, next), err
}
