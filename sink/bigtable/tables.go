package bigtable

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// Diff compares the instance with the wanted tables. Nothing is written.
func (c *Client) Diff(ctx context.Context, want []tableschema.Table) ([]tableschema.Difference, error) {
	admin, err := c.adminClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare schema: %w", err)
	}
	found, err := tableschema.Diff(ctx, admin, want)
	return found, orInterrupted(ctx, err)
}

// Ensure removes the differences that Diff finds, and returns them. It may be repeated and run by several processes at
// once. It never drops a table or family.
func (c *Client) Ensure(ctx context.Context, want []tableschema.Table) ([]tableschema.Difference, error) {
	found, err := c.Diff(ctx, want)
	if err != nil {
		return nil, err
	}
	if err := tableschema.Fix(ctx, c.admin, found); err != nil {
		return nil, orInterrupted(ctx, err)
	}
	return found, nil
}
