package bigtable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cenkalti/backoff/v5"

	"github.com/tailrace-cdc/replicator/change"
)

const targetQualifier = "target"

// ErrTargetChanged means that a target table does not belong to the pipeline from which it was to
// be adopted.
var ErrTargetChanged = errors.New("the target belongs to another pipeline meanwhile")

// storedTarget is a target's row, and the cell that holds it; nil: there is none.
type storedTarget struct {
	targetRow
	stored []byte
}

// TargetName returns the full name of a target table: projects/P/instances/I/tables/T.
func (c *Client) TargetName(table string) string { return c.table(table).name }

// targetKey begins with the separator of stateKey, so it differs from all state keys: no pipeline
// has an empty name.
func targetKey(name string) []byte { return []byte("#target#" + name) }

// TargetKey returns the key of the row of the state table that names the pipeline of a target
// table.
func (c *Client) TargetKey(table string) string { return string(targetKey(c.TargetName(table))) }

// ClaimTarget stores that a target table belongs to the pipeline, unless it belongs to another one,
// and returns the name of the pipeline that owns it then. Two pipelines that claim it at once get
// the same result. Several tables of one pipeline may share a target. It blocks while the service
// is unavailable.
func (c *Client) ClaimTarget(ctx context.Context, pipeline, table string) (owner string, err error) {
	name := c.TargetName(table)
	row := targetRow{Target: name, Pipeline: pipeline, Since: time.Now().UTC()}
	if err := c.setTarget(ctx, row, columnFilter(targetQualifier), false); err != nil {
		return "", fmt.Errorf("claim target %s: %w", table, err)
	}
	// Read back in any case: an earlier attempt of ours may have stored it, and its reply was lost.
	stored, err := c.targetRepeatedly(ctx, table)
	return stored.Pipeline, err
}

// AdoptTarget makes a target table belong to pipeline instead of to from; "" is a target that no
// pipeline has claimed. floor is the highest guard in the table (HighestGuard), above which the
// versions of the new pipeline must start; it is stored with the claim, so that a start that is
// interrupted after this one cannot lose it. It returns ErrTargetChanged if the target belongs to a
// third pipeline, and succeeds again once it is adopted. It blocks while the service is
// unavailable.
//
// The pipeline from must never run again. A running daemon of it is not stopped by this.
func (c *Client) AdoptTarget(ctx context.Context, pipeline, table, from string, floor change.Version) error {
	have, err := c.targetRepeatedly(ctx, table)
	if err != nil {
		return fmt.Errorf("adopt target %s: %w", table, err)
	}
	if have.Pipeline == pipeline && have.From == from && have.Floor >= floor {
		return nil
	}
	if have.Pipeline != from && have.Pipeline != pipeline {
		return fmt.Errorf("adopt target %s: %w: it belongs to pipeline %q", table, ErrTargetChanged, have.Pipeline)
	}
	row := targetRow{Target: c.TargetName(table), Pipeline: pipeline, Since: time.Now().UTC(),
		From: from, Floor: max(floor, have.Floor), Retired: have.Retired}
	predicate, want := columnFilter(targetQualifier), false
	if have.stored != nil {
		predicate, want = cellValue(targetQualifier, have.stored), true
	}
	if err := c.setTarget(ctx, row, predicate, want); err != nil {
		return fmt.Errorf("adopt target %s: %w", table, err)
	}
	stored, err := c.targetRepeatedly(ctx, table)
	if err == nil && (stored.Pipeline != pipeline || stored.Floor < floor) {
		err = fmt.Errorf("adopt target %s: %w: it belongs to pipeline %q", table, ErrTargetChanged, stored.Pipeline)
	}
	return err
}

// Retire notes that the replication of a source table into a target has ended. It may be repeated.
// A target that belongs to another pipeline is left alone. It blocks while the service is
// unavailable.
func (c *Client) Retire(ctx context.Context, pipeline, target, table string, as Retired) error {
	_, err := c.editTarget(ctx, pipeline, target, func(r *targetRow) bool { return r.Retire(table, as) })
	return err
}

// Unretire takes the note of Retire away: the replication of the table begins again.
func (c *Client) Unretire(ctx context.Context, pipeline, target, table string) error {
	_, err := c.editTarget(ctx, pipeline, target, func(r *targetRow) bool { return r.Unretire(table) })
	return err
}

// ClaimSole reserves a target of the pipeline for one source table, unless it is reserved for
// another one that is still replicated. It returns the table that holds the target afterwards. It
// blocks while the service is unavailable.
func (c *Client) ClaimSole(ctx context.Context, pipeline, target, table string) (holder string, err error) {
	row, err := c.editTarget(ctx, pipeline, target, func(r *targetRow) bool { return r.ClaimSole(table) })
	return row.Sole, err
}

// editTarget changes the row of a target of the pipeline, until edit has nothing to change, and
// returns it.
func (c *Client) editTarget(
	ctx context.Context, pipeline, target string, edit func(*targetRow) (changes bool),
) (targetRow, error) {
	for {
		have, err := c.targetRepeatedly(ctx, target)
		next := have.Clone()
		if err != nil || have.Pipeline != pipeline || !edit(&next) {
			return next, wrap("change the row of target "+target, err)
		}
		if err := c.setTarget(ctx, next, cellValue(targetQualifier, have.stored), true); err != nil {
			return next, wrap("change the row of target "+target, err)
		}
	}
}

// Retired returns the source tables that are no longer replicated into a target, by name. A
// pipeline that adopts the target must leave their rows alone, too.
func (c *Client) Retired(ctx context.Context, target string) (map[string]Retired, error) {
	row, err := c.targetRepeatedly(ctx, target)
	return row.Retired, err
}

// setTarget stores a target's row if the predicate's result is want.
func (c *Client) setTarget(ctx context.Context, row targetRow, predicate *btpb.RowFilter, want bool) error {
	row.Format = targetFormat
	value, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("encode row of target %s: %w", row.Target, err)
	}
	x := &stateCell{key: targetKey(row.Target), qualifier: targetQualifier, value: value}
	_, err = c.setIf(ctx, x, predicate, want)
	return err
}

// TargetFloor returns the version above which the pipeline that adopted a target must start; 0
// where none has.
func (c *Client) TargetFloor(ctx context.Context, table string) (change.Version, error) {
	row, err := c.targetRepeatedly(ctx, table)
	return row.Floor, err
}

// targetRepeatedly is loadTarget, repeated until the service answers or ctx ends.
func (c *Client) targetRepeatedly(ctx context.Context, table string) (storedTarget, error) {
	return backoff.Retry(ctx, func() (storedTarget, error) {
		row, err := c.loadTarget(ctx, table)
		return row, retryError(err)
	}, backoff.WithBackOff(c.newBackOff()), backoff.WithMaxElapsedTime(0))
}

// TargetOwner returns the name of the pipeline that a target table belongs to, or "" while none has
// claimed it. A pipeline that was last started by a build without such rows has claimed none.
func (c *Client) TargetOwner(ctx context.Context, table string) (pipeline string, err error) {
	row, err := c.loadTarget(ctx, table)
	return row.Pipeline, err
}

// loadTarget reads the row of a target table in one attempt; the zero row if there is none.
func (c *Client) loadTarget(ctx context.Context, table string) (row storedTarget, err error) {
	row.stored, err = c.readCell(ctx, targetKey(c.TargetName(table)), targetQualifier)
	if err == nil && row.stored != nil {
		err = json.Unmarshal(row.stored, &row.targetRow)
	}
	if err == nil && row.Format > targetFormat { // Rule 11
		err = &NewerFormatError{Have: row.Format, Know: targetFormat}
	}
	return row, wrap("read owner of target "+table, err)
}

// wrap wraps an error, or returns nil for nil.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
