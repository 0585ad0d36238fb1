package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
)

// claimTarget makes the target the pipeline's, or refuses it because it belongs to another pipeline: two into one
// target mix its rows, and neither would notice. Other tables of this pipeline may share it: the mappings are proved
// together.
func (r *stateRow) claimTarget(ctx context.Context) error {
	if r.targetClaimed {
		return nil
	}
	owner, err := r.bigtable.ClaimTarget(ctx, r.o.Name, r.Target)
	if err != nil {
		return err
	}
	if refused := CheckTarget(r.bigtable, r.o.Name, r.Target, owner); refused != nil && !r.o.Adopt {
		return refused
	} else if refused != nil {
		if err := r.adopt(ctx, owner); err != nil {
			return err
		}
	}
	r.targetClaimed = true
	return nil
}

// adopt takes a target over from the pipeline that owns it, with everything in it: this pipeline's versions begin above
// every guard that is there, else the rows would skip its writes (Rule 5).
func (r *stateRow) adopt(ctx context.Context, owner string) error {
	floor, _, err := r.bigtable.HighestGuard(ctx, r.Target)
	if err != nil {
		return fmt.Errorf("read guards of %s: %w", r.Target, err)
	}
	r.log.Warn("adopt the target of another pipeline", zap.String("pipeline", owner), zap.Int64("floor", int64(floor)))
	return r.bigtable.AdoptTarget(ctx, r.o.Name, r.Target, owner, floor)
}

// floorOfTarget returns the version above which a table that is started for the first time must begin: 0 in a target
// without rows of other pipelines. It refuses a target that holds some, unless that was allowed.
func (r *stateRow) floorOfTarget(ctx context.Context) (change.Version, error) {
	floor, err := r.bigtable.TargetFloor(ctx, r.Target)
	if floor > 0 || err != nil {
		return floor, err
	}
	highest, pipelines, err := r.bigtable.HighestGuard(ctx, r.Target)
	if err != nil {
		return 0, fmt.Errorf("read guards of %s: %w", r.Target, err)
	}
	others := slices.DeleteFunc(pipelines, func(p string) bool { return p == r.o.Name || p == "" && r.sharesTarget() })
	if len(others) == 0 {
		return 0, nil
	}
	if !r.o.Adopt {
		return 0, foreignRows(r.Target, others)
	}
	return highest, r.adopt(ctx, r.o.Name)
}

// sharesTarget reports whether another table of the pipeline has the same target. Guards of older builds that name no
// pipeline may be that table's.
func (r *stateRow) sharesTarget() bool {
	return slices.ContainsFunc(r.o.Tables, func(t Table) bool { return t.Target == r.Target && t.Source != r.Source })
}

// leadAbove returns the reservation of a first life whose versions begin above a floor.
func (r *stateRow) leadAbove(floor change.Version) time.Duration {
	return r.o.Periods.Lead + max(0, time.Duration(int64(floor)-int64(r.now()))*time.Millisecond)
}

func foreignRows(target string, pipelines []string) *RefusedError {
	for i, p := range pipelines {
		if pipelines[i] = fmt.Sprintf("pipeline %q", p); p == "" {
			pipelines[i] = "a pipeline that an older build ran, or whose secret is not configured"
		}
	}
	return &RefusedError{
		What: fmt.Sprintf("Bigtable table %s holds rows of %s: what is copied into it would be mixed with them",
			target, strings.Join(pipelines, ", ")),
		Hint: "choose another target; or `replicator run --adopt`, which begins above the versions of all these rows",
	}
}
