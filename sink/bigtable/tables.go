package bigtable

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/failure"
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

// HasTable reports whether the instance has a table, as the service describes it.
func (c *Client) HasTable(ctx context.Context, table string) (bool, error) {
	admin, err := c.adminClient(ctx)
	if err == nil {
		_, err = admin.TableInfo(ctx, table)
	}
	switch {
	case err == nil:
		return true, nil
	case Classify(err) == failure.Missing:
		return false, nil
	}
	return false, fmt.Errorf("look for table %s: %w", table, orInterrupted(ctx, err))
}

// Ensure removes the differences that Diff finds, and returns them. It may be repeated and run by
// several processes at once. It never drops a table or family.
func (c *Client) Ensure(ctx context.Context, want []tableschema.Table) ([]tableschema.Difference, error) {
	return c.ensure(ctx, want, false)
}

// EnsureForced is Ensure that ignores Bigtable's warnings: a rule may keep more cells than before
// although the instance is replicated.
func (c *Client) EnsureForced(ctx context.Context, want []tableschema.Table) ([]tableschema.Difference, error) {
	return c.ensure(ctx, want, true)
}

func (c *Client) ensure(
	ctx context.Context, want []tableschema.Table, force bool,
) ([]tableschema.Difference, error) {
	found, err := c.Diff(ctx, want)
	if err != nil {
		return nil, err
	}
	if err := tableschema.Fix(ctx, c.admin, found, force); err != nil {
		return nil, orInterrupted(ctx, err)
	}
	return found, nil
}
