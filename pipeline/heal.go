package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/transform"
)

// onGapHeal is the OnGap of a table with gaps that are accepted and healed without an operator.
const onGapHeal = "heal"

// sharing returns the programs of the other tables with the same target.
func (t *table) sharing() ([]*transform.Program, error) {
	if t.Sharing == nil {
		return nil, nil
	}
	return t.Sharing(t.info)
}

// foreign returns what deletes cells of the target that belong to no item.
func (t *table) foreign(o resync.Options, owned func() error) *resync.ForeignDeleter {
	programs := func() ([]*transform.Program, error) {
		sharing, err := t.sharing()
		return append([]*transform.Program{t.row.Program}, sharing...), err
	}
	return &resync.ForeignDeleter{
		Target: t.Target, Client: t.bigtable, Programs: programs, Prove: o.Prove, Now: o.Now, Owned: owned,
	}
}

// newWhole returns the resync of the whole table, which runs when the log holds an order for it.
func (t *table) newWhole(o resync.Options) (*resync.Whole, error) {
	sharing, err := t.sharing()
	if err != nil {
		return nil, err
	}
	w := &resync.Whole{
		Options: o, Program: t.row.Program, Sharing: sharing, Client: t.bigtable, Target: t.Target,
		Scratch: filepath.Join(t.o.Scratch, "resync"), Pending: t.view.resync.Load,
	}
	t.view.whole.Store(w)
	return w, nil
}

// resyncBeside resyncs the whole table, and orders a resync where gaps heal by themselves, until
// ctx ends.
func (t *table) resyncBeside(ctx context.Context, o resync.Options) error {
	for {
		w, err := t.newWhole(o)
		if err == nil {
			defer t.view.whole.Store(nil)
			return w.Run(ctx)
		}
		t.log.Warn("the other tables of the target are not known yet: a resync would have to wait", zap.Error(err))
		if failure.Pause(ctx, t.o.Periods.Retry) != nil {
			return nil
		}
	}
}

// healGaps accepts the gaps that are found and orders a resync that heals them, until ctx ends. It
// does nothing where gaps wait for an operator.
func (t *table) healGaps(ctx context.Context, o resync.Options) error {
	if t.OnGap != onGapHeal {
		return nil
	}
	for failure.Pause(ctx, t.o.Periods.Retry) == nil {
		gaps := t.view.gapsToHeal.Swap(nil) // observed again, before the order is, they are ordered again: once counts
		if gaps == nil || len(gaps.ids) == 0 {
			continue
		}
		t.log.Error("gaps are accepted, and the whole table is resynced because of them", zap.Strings("gaps", gaps.ids))
		order := healOrder(gaps.ids)
		if err := o.Append(ctx, &checkpoint.Control{Resync: order, By: "on_gap", At: t.now()}); err != nil {
			return err
		}
		if gaps.damage {
			return &outcome.StaleError{Err: errDamageAccepted}
		}
	}
	return nil
}

// errDamageAccepted ends a life, because sinks take from the state with which it begins what damage
// they may pass.
var errDamageAccepted = errors.New("damage in the log is accepted: the sinks begin again")

// healOrder returns the order of a resync that heals gaps. Its id is made from the gaps. So an
// owner orders the same resync if it stores the order again before it has found it in the log.
func healOrder(gaps []string) *checkpoint.ResyncOrder {
	sum := sha256.Sum256([]byte(strings.Join(gaps, " ")))
	return &checkpoint.ResyncOrder{ID: "gap-" + hex.EncodeToString(sum[:5]), Gaps: gaps}
}

// openGaps are gaps that nothing heals yet.
type openGaps struct {
	ids    []string
	damage bool // of the log itself is among them, at which sinks have halted
}

// orderTime is the part of an order's id that distinguishes it from others.
func orderTime(at change.Millis) string { return at.Time().UTC().Format("20060102T150405.000") }
