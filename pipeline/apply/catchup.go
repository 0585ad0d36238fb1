package apply

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
)

// catchUp applies the letters above the version of the put as one write, now that the rows hold
// what was read. Without it an item of shared rows that is written all the time would never leave
// the dead letters: each letter of the last minute waits for a reading that is a minute newer, and
// the item makes new letters until none is left.
//
// The letters of what outlives its item are not united: each of them writes a version of its own.
//
// Rule 5: the write is complete up to the newest letter, and has its version. Later changes of the
// item wait in the lane.
func (x *resyncing) catchUp(ctx context.Context) error {
	open, changes := x.above()
	if len(open) == 0 || x.out.Replaced {
		return nil
	}
	follow := protocol.FollowOf(x.item.Item, changes)
	if follow != protocol.FollowNot && x.out.Skipped > 0 {
		x.caughtUp = x.skipped
	}
	put := protocol.Put{Written: x.out.Written, Equal: x.out.Equal, Skipped: x.out.Skipped, Again: x.again}
	switch protocol.CatchUpOf(put, follow) {
	case protocol.LettersApart:
		return x.applyLetters(ctx, true)
	case protocol.LettersStay:
		return nil
	}
	err := x.applyTogether(ctx, changes)
	switch out := outcome.OfChange(err); out.Action {
	case outcome.Proceed:
		for _, l := range open {
			l.applied, l.refused = true, nil
		}
	case outcome.DeadLetter:
		open[len(open)-1].refused = &out
	default:
		return fmt.Errorf("apply %d dead letters together: %w", len(open), err)
	}
	return nil
}

// above returns the late letters in version order, with their changes.
func (x *resyncing) above() (open []*heldLetter, changes []*change.Change) {
	for _, l := range x.letters {
		if x.isLate(l) {
			open, changes = append(open, l), append(changes, l.change)
		}
	}
	return open, changes
}

// applyTogether writes the newest image of the changes at its version, and clears what any of the
// earlier ones had.
func (x *resyncing) applyTogether(ctx context.Context, changes []*change.Change) error {
	x.dec.Reset()
	if err := x.o.Table.Program.Coalesce(x.dec, changes, &x.write); err != nil {
		return err
	}
	if len(x.write.Rows) == 0 {
		return nil
	}
	if err := x.shared.bigtable.ApplyInCopy(ctx, x.o.Target, &x.write, x.fresh); err != nil {
		return &outcome.SinkError{Err: err}
	}
	return nil
}
