package bigtable

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	targetQualifier = "target"
	targetFormat    = 1
)

// targetRow names the pipeline that writes to a target table. It is written once. Two pipelines must not write to one
// table, because their rows would be mixed without an error.
type targetRow struct {
	Format   int       `json:"format"` // Rule 11: Everything stored carries a format number.
	Target   string    `json:"target"`
	Pipeline string    `json:"pipeline"`
	Since    time.Time `json:"since"` // by the clock of the machine that wrote it
}

// TargetName returns the full name of a target table: projects/P/instances/I/tables/T.
func (c *Client) TargetName(table string) string { return c.table(table).name }

// targetKey begins with the separator of stateKey, so it differs from all state keys: no pipeline has an empty name.
func targetKey(name string) []byte { return []byte("#target#" + name) }

// TargetKey returns the key of the row of StateTable that names the pipeline of a target table.
func (c *Client) TargetKey(table string) string { return string(targetKey(c.TargetName(table))) }

// ClaimTarget stores that a target table belongs to the pipeline, unless it belongs to another one, and returns the
// name of the pipeline that owns it then. Two pipelines that claim it at once get the same result. Several tables of
// one pipeline may share a target. It blocks while the service is unavailable.
func (c *Client) ClaimTarget(ctx context.Context, pipeline, table string) (owner string, err error) {
	name := c.TargetName(table)
	row := targetRow{Format: targetFormat, Target: name, Pipeline: pipeline, Since: time.Now().UTC()}
	value, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("claim target %s: %w", table, err)
	}
	x := &stateCell{key: targetKey(name), qualifier: targetQualifier, value: value}
	if _, err := c.setIf(ctx, x, columnFilter(targetQualifier), false); err != nil {
		return "", fmt.Errorf("claim target %s: %w", table, err)
	}
	// Read back in any case: an earlier attempt of ours, whose reply was lost, may have stored it.
	return backoff.Retry(ctx, func() (string, error) {
		owner, err := c.TargetOwner(ctx, table)
		return owner, retryError(err)
	}, backoff.WithBackOff(c.newBackOff()), backoff.WithMaxElapsedTime(0))
}

// TargetOwner returns the name of the pipeline that a target table belongs to, or "" while none has claimed it. A
// pipeline that was last started by a build without such rows has claimed none.
func (c *Client) TargetOwner(ctx context.Context, table string) (pipeline string, err error) {
	value, err := c.readCell(ctx, targetKey(c.TargetName(table)), targetQualifier)
	if err != nil || value == nil {
		return "", wrap("read owner of target "+table, err)
	}
	var row targetRow
	if err := json.Unmarshal(value, &row); err != nil {
		return "", fmt.Errorf("read owner of target %s: %w", table, err)
	}
	if row.Format > targetFormat { // Rule 11
		newer := &NewerFormatError{Have: row.Format, Know: targetFormat}
		return "", fmt.Errorf("read owner of target %s: %w", table, newer)
	}
	return row.Pipeline, nil
}

// wrap wraps an error, or returns nil for nil.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
