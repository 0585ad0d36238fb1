package staterow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// claimTarget makes the target the pipeline's, or refuses it because it belongs to another
// pipeline: two into one target mix its rows, and neither would notice. Other tables of this
// pipeline may share it: the mappings are proved together.
func (r *Row) claimTarget(ctx context.Context) error {
	if r.targetClaimed || r.o.Target == "" {
		return nil
	}
	owner, err := r.o.Client.ClaimTarget(ctx, r.o.Pipeline, r.o.Target)
	if err != nil {
		return err
	}
	if refused := CheckTarget(r.o.Client, r.o.Pipeline, r.o.Target, owner); refused != nil && !r.o.Adopt {
		return refused
	} else if refused != nil {
		if err := r.adopt(ctx, owner); err != nil {
			return err
		}
	}
	if r.o.Sole {
		if err := r.claimSole(ctx); err != nil {
			return err
		}
	}
	r.targetClaimed = true
	return nil
}

// claimSole stores that the target is the table's alone. Replicas may find tables in another order,
// and each of them compiles a found table without knowing of the others: of two with one target the
// first that claims it is replicated.
func (r *Row) claimSole(ctx context.Context) error {
	holder, err := r.o.Client.ClaimSole(ctx, r.o.Pipeline, r.o.Target, r.o.Source)
	if err != nil || holder == r.o.Source {
		return err
	}
	return &outcome.RefusedError{
		What: fmt.Sprintf("%s, the target of %s, is that of %s already", r.o.Target, r.o.Source, holder),
		Hint: "give the table an entry of its own, with another target, or name it under except",
	}
}

// adopt takes a target over from the pipeline that owns it, with everything in it: this pipeline's
// versions begin above every guard that is there, else the rows would skip its writes (Rule 5).
func (r *Row) adopt(ctx context.Context, owner string) error {
	if err := checkUnfenced(ctx, r.o.Client, r.o.Target); err != nil {
		return err
	}
	floor, _, err := r.o.Client.HighestGuard(ctx, r.o.Target)
	if err != nil {
		return fmt.Errorf("read guards of %s: %w", r.o.Target, err)
	}
	retired, err := r.o.Client.Retired(ctx, r.o.Target)
	if err != nil {
		return err
	}
	for _, x := range retired { // whose guards may be gone
		floor = max(floor, x.Floor)
	}
	r.log.Warn("adopt the target of another pipeline", zap.String("pipeline", owner), zap.Int64("floor", int64(floor)))
	return r.o.Client.AdoptTarget(ctx, r.o.Pipeline, r.o.Target, owner, floor)
}

// CheckFirst returns why a table that has no row may not be started, or nil when it may. The rows
// of its target may belong to the application: because a fenced table, of any pipeline, writes to
// it, or because the replication of this very table has ended.
//
// Rule 12: behind a fence nothing is written to Bigtable, whatever the caller.
func CheckFirst(ctx context.Context, c *bigtable.Client, table, target string) error {
	retired, err := c.Retired(ctx, target)
	if err != nil {
		return err
	}
	if r, ok := retired[table]; ok {
		return &outcome.RefusedError{
			What: fmt.Sprintf("the replication of table %s into %s was retired at %s: to begin again would copy the table over "+
				"what the application has written since", table, target, r.At.UTC().Format(time.RFC3339)),
			Hint: "take the table out of the configuration, or choose another target; only if the rows are to be replaced by " +
				"what DynamoDB holds: `replicator run --adopt`",
		}
	}
	return checkUnfenced(ctx, c, target)
}

// checkUnfenced refuses a target to which a fenced table writes, of whichever pipeline.
func checkUnfenced(ctx context.Context, c *bigtable.Client, target string) error {
	row, err := c.FencedTable(ctx, target)
	if err != nil || row == nil {
		return err
	}
	id, f := row.Identity, row.Fenced
	return &outcome.RefusedError{
		What: fmt.Sprintf("Bigtable table %s is fenced: table %s of pipeline %q writes to it, and cutover %s has fenced it "+
			"since %s", target, id.Table, id.Pipeline, f.ID, f.Time.UTC().Format(time.RFC3339)),
		Hint: "its rows may belong to the application by now: choose another target; if the application has not moved to " +
			"it, `replicator cutover --undo` with the configuration of that pipeline",
	}
}

// checkFirst is CheckFirst, unless the operator takes a retired table's rows over again.
func (r *Row) checkFirst(ctx context.Context) error {
	if r.o.Target == "" {
		return nil
	}
	if !r.o.Adopt {
		return CheckFirst(ctx, r.o.Client, r.o.Source, r.o.Target)
	}
	retired, err := r.o.Client.Retired(ctx, r.o.Target)
	if _, ok := retired[r.o.Source]; !ok || err != nil {
		return errors.Join(err, checkUnfenced(ctx, r.o.Client, r.o.Target))
	}
	if err := r.claimTarget(ctx); err != nil { // it may have been another pipeline that retired it
		return err
	}
	if err := r.adopt(ctx, r.o.Pipeline); err != nil {
		return err
	}
	// Others that were retired stay so: their rows may belong to the application, with guards that
	// are gone.
	return r.o.Client.Unretire(ctx, r.o.Pipeline, r.o.Target, r.o.Source)
}

// floorOfTarget returns the version above which a table that is started for the first time must
// begin: 0 in a target without rows of other pipelines. It refuses a target that holds some, unless
// that was allowed.
func (r *Row) floorOfTarget(ctx context.Context) (change.Version, error) {
	if r.o.Target == "" {
		return 0, nil
	}
	floor, err := r.o.Client.TargetFloor(ctx, r.o.Target)
	if floor > 0 || err != nil {
		return floor, err
	}
	highest, pipelines, err := r.o.Client.HighestGuard(ctx, r.o.Target)
	if err != nil {
		return 0, fmt.Errorf("read guards of %s: %w", r.o.Target, err)
	}
	others := slices.DeleteFunc(pipelines, func(p string) bool { return p == r.o.Pipeline || p == "" && r.o.Shares })
	if len(others) == 0 {
		return 0, nil
	}
	if !r.o.Adopt {
		return 0, foreignRows(r.o.Target, others)
	}
	return highest, r.adopt(ctx, r.o.Pipeline)
}

// leadAbove returns the reservation of a first life with versions that begin above a floor.
func (r *Row) leadAbove(floor change.Version) time.Duration {
	return r.o.Lead + max(0, time.Duration(int64(floor)-int64(r.o.Now()))*time.Millisecond)
}

func foreignRows(target string, pipelines []string) *outcome.RefusedError {
	for i, p := range pipelines {
		if pipelines[i] = fmt.Sprintf("pipeline %q", p); p == "" {
			pipelines[i] = "a pipeline that is not known: its secret is not configured, or a guard is broken"
		}
	}
	return &outcome.RefusedError{
		What: fmt.Sprintf("Bigtable table %s holds rows of %s: what is copied into it would be mixed with them",
			target, strings.Join(pipelines, ", ")),
		Hint: "choose another target; or `replicator run --adopt`, which begins above the versions of all these rows",
	}
}
