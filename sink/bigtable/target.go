package bigtable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cenkalti/backoff/v5"

	"github.com/tailrace-cdc/replicator/change"
)

const (
	targetQualifier = "target"
	targetFormat    = 3 // the highest that this build knows
)

// ErrTargetChanged means that a target table does not belong to the pipeline from which it was to be adopted.
var ErrTargetChanged = errors.New("the target belongs to another pipeline meanwhile")

// targetRow names the pipeline that writes to a target table. It is written once, and again when another pipeline
// adopts the target. Two pipelines must not write to one table, because their rows would be mixed without an error.
//
// An adopted target has format 2: an older build would begin the adopting pipeline without the floor. One with retired
// tables has format 3.
type targetRow struct {
	Format   int       `json:"format"` // Rule 11: Everything stored carries a format number.
	Target   string    `json:"target"`
	Pipeline string    `json:"pipeline"`
	Since    time.Time `json:"since"` // by the clock of the machine that wrote it

	// The following members are those of an adopted target.
	From  string         `json:"from,omitempty"`  // the pipeline before; "": none had claimed the target
	Floor change.Version `json:"floor,omitempty"` // the highest guard that was found: new versions must be above it

	// Retired are source tables whose replication has ended, by name. Format 3: an older build would copy them again.
	Retired map[string]Retired `json:"retired,omitempty"`

	stored []byte // the cell as loaded; nil: there is none
}

// Retired is a source table whose replication into a target has ended: the rows may belong to the application.
type Retired struct {
	At    time.Time      `json:"at"`    // by the clock of the machine that wrote it
	Floor change.Version `json:"floor"` // no version that the table was given is above it
}

// TargetName returns the full name of a target table: projects/P/instances/I/tables/T.
func (c *Client) TargetName(table string) string { return c.table(table).name }

// targetKey begins with the separator of stateKey, so it differs from all state keys: no pipeline has an empty name.
func targetKey(name string) []byte { return []byte("#target#" + name) }

// TargetKey returns the key of the row of the state table that names the pipeline of a target table.
func (c *Client) TargetKey(table string) string { return string(targetKey(c.TargetName(table))) }

// ClaimTarget stores that a target table belongs to the pipeline, unless it belongs to another one, and returns the
// name of the pipeline that owns it then. Two pipelines that claim it at once get the same result. Several tables of
// one pipeline may share a target. It blocks while the service is unavailable.
func (c *Client) ClaimTarget(ctx context.Context, pipeline, table string) (owner string, err error) {
	name := c.TargetName(table)
	row := targetRow{Format: 1, Target: name, Pipeline: pipeline, Since: time.Now().UTC()}
	if err := c.setTarget(ctx, row, columnFilter(targetQualifier), false); err != nil {
		return "", fmt.Errorf("claim target %s: %w", table, err)
	}
	// Read back in any case: an earlier attempt of ours, whose reply was lost, may have stored it.
	stored, err := c.targetRepeatedly(ctx, table)
	return stored.Pipeline, err
}

// AdoptTarget makes a target table belong to pipeline instead of to from; "" is a target that no pipeline has claimed.
// floor is the highest guard in the table (HighestGuard), above which the versions of the new pipeline must start; it
// is stored with the claim, so that a start that is interrupted after this one cannot lose it. It returns
// ErrTargetChanged if the target belongs to a third pipeline, and succeeds again once it is adopted. It blocks while
// the service is unavailable.
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
	row := targetRow{Format: 2, Target: c.TargetName(table), Pipeline: pipeline, Since: time.Now().UTC(),
		From: from, Floor: max(floor, have.Floor), Retired: have.Retired}
	if len(row.Retired) > 0 {
		row.Format = targetFormat
	}
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

// Retire notes that the replication of a source table into a target has ended. It may be repeated. A target that
// belongs to another pipeline is left alone. It blocks while the service is unavailable.
func (c *Client) Retire(ctx context.Context, pipeline, target, table string, as Retired) error {
	return c.editRetired(ctx, pipeline, target, table, func(all map[string]Retired) bool {
		_, done := all[table]
		all[table] = as
		return !done
	})
}

// Unretire takes the note of Retire away: the replication of the table begins again.
func (c *Client) Unretire(ctx context.Context, pipeline, target, table string) error {
	return c.editRetired(ctx, pipeline, target, table, func(all map[string]Retired) bool {
		_, there := all[table]
		delete(all, table)
		return there
	})
}

// editRetired changes the tables that have ended in a target of the pipeline, until edit has nothing to change.
func (c *Client) editRetired(
	ctx context.Context, pipeline, target, table string, edit func(map[string]Retired) (changes bool),
) error {
	for {
		have, err := c.targetRepeatedly(ctx, target)
		if err != nil {
			return fmt.Errorf("note what is retired, %s: %w", table, err)
		}
		next := have
		next.Format, next.Retired = targetFormat, map[string]Retired{}
		maps.Copy(next.Retired, have.Retired)
		if have.Pipeline != pipeline || !edit(next.Retired) {
			return nil
		}
		if err := c.setTarget(ctx, next, cellValue(targetQualifier, have.stored), true); err != nil {
			return fmt.Errorf("note what is retired, %s: %w", table, err)
		}
	}
}

// Retired returns the source tables whose replication into a target has ended, by name. Also who adopts the target must
// leave their rows alone.
func (c *Client) Retired(ctx context.Context, target string) (map[string]Retired, error) {
	row, err := c.targetRepeatedly(ctx, target)
	return row.Retired, err
}

// setTarget stores a target's row if the predicate's result is want.
func (c *Client) setTarget(ctx context.Context, row targetRow, predicate *btpb.RowFilter, want bool) error {
	value, err := json.Marshal(row)
	if err != nil {
		return err
	}
	x := &stateCell{key: targetKey(row.Target), qualifier: targetQualifier, value: value}
	_, err = c.setIf(ctx, x, predicate, want)
	return err
}

// TargetFloor returns the version above which the pipeline that adopted a target must start; 0 where none has.
func (c *Client) TargetFloor(ctx context.Context, table string) (change.Version, error) {
	row, err := c.targetRepeatedly(ctx, table)
	return row.Floor, err
}

// targetRepeatedly is loadTarget, repeated until the service answers or ctx ends.
func (c *Client) targetRepeatedly(ctx context.Context, table string) (targetRow, error) {
	return backoff.Retry(ctx, func() (targetRow, error) {
		row, err := c.loadTarget(ctx, table)
		return row, retryError(err)
	}, backoff.WithBackOff(c.newBackOff()), backoff.WithMaxElapsedTime(0))
}

// TargetOwner returns the name of the pipeline that a target table belongs to, or "" while none has claimed it. A
// pipeline that was last started by a build without such rows has claimed none.
func (c *Client) TargetOwner(ctx context.Context, table string) (pipeline string, err error) {
	row, err := c.loadTarget(ctx, table)
	return row.Pipeline, err
}

// loadTarget reads the row of a target table in one attempt; the zero row if there is none.
func (c *Client) loadTarget(ctx context.Context, table string) (row targetRow, err error) {
	row.stored, err = c.readCell(ctx, targetKey(c.TargetName(table)), targetQualifier)
	if err == nil && row.stored != nil {
		err = json.Unmarshal(row.stored, &row)
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
