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

// targetRow says which pipeline writes to a target table. It is written once: rows of two pipelines in one table would
// be mixed, and neither would notice.
type targetRow struct {
	Format   int       `json:"format"` // Rule 11: Everything stored carries a format number.
	Target   string    `json:"target"`
	Pipeline string    `json:"pipeline"`
	Since    time.Time `json:"since"` // by the clock of the machine that wrote it
}

// TargetName is the full name of a target table: projects/P/instances/I/tables/T.
func (c *Client) TargetName(table string) string { return c.table(table).name }

// targetKey begins with the separator of stateKey: no pipeline has an empty name.
func targetKey(name string) []byte { return []byte("#target#" + name) }

// TargetKey is the key of the row of StateTable that says which pipeline writes to a target table.
func (c *Client) TargetKey(table string) string { return string(targetKey(c.TargetName(table))) }

// ClaimTarget makes a target table the pipeline's own, if no other pipeline has it, and returns the name of the pipeline
// that has it then. Of two that claim at once one wins, and both hear which. Several tables of one pipeline may share a
// target. It blocks while the service is away.
func (c *Client) ClaimTarget(ctx context.Context, pipeline, table string) (owner string, err error) {
	name := c.TargetName(table)
	value, err := json.Marshal(targetRow{Format: targetFormat, Target: name, Pipeline: pipeline, Since: time.Now().UTC()})
	if err != nil {
		return "", fmt.Errorf("claim target %s: %w", table, err)
	}
	x := &stateCell{key: targetKey(name), qualifier: targetQualifier, value: value}
	if _, err := c.setIf(ctx, x, columnFilter(targetQualifier), false); err != nil {
		return "", fmt.Errorf("claim target %s: %w", table, err)
	}
	// Read back in any case: an attempt whose answer was lost may have been ours.
	return backoff.Retry(ctx, func() (string, error) {
		owner, err := c.TargetOwner(ctx, table)
		return owner, retryError(err)
	}, backoff.WithBackOff(c.newBackOff()), backoff.WithMaxElapsedTime(0))
}

// TargetOwner returns the name of the pipeline that a target table belongs to; empty while none has claimed it. A
// pipeline whose last start was with a build that knew no such rows has claimed none.
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
		return "", fmt.Errorf("read owner of target %s: %w", table, &NewerFormatError{Have: row.Format, Know: targetFormat})
	}
	return row.Pipeline, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
