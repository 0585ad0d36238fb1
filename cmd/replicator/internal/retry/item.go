package retry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/transform"
)

// codeCascade is the code of a letter that would delete what was written later. Only a retry sets it.
const codeCascade = "cascade"

// sinkBigtable is the sink of letters that become rows; those of any other sink become events of the archive.
const sinkBigtable = "bigtable"

// item applies the letters of one item for one sink.
type item struct {
	*Retrier
	table   *catalog.Table
	letters *deadletter.Store
	applied *change.Change // of the previous letter; nil: it was not applied by this retry
}

// apply applies the letters in version order, up to the first that is refused.
//
// Rule 5: changes of one item reach a sink in version order or not at all. A later letter may depend on the row that an
// earlier one leaves, so letters are deleted only when no more can be applied, and newest first: wherever a retry ends,
// the earliest letters remain, and applying those again changes nothing.
func (x *item) apply(ctx context.Context, ids []string) error {
	var done []string
	for i, id := range ids {
		letter, err := x.letters.Get(ctx, id)
		if errors.Is(err, deadletter.ErrNotFound) { // dropped meanwhile
			x.applied = nil
			continue
		}
		if err != nil {
			return fmt.Errorf("read dead letter %s: %w", id, err)
		}
		out, err := x.try(ctx, letter)
		if err != nil {
			return err
		}
		if out.Action == outcome.Proceed {
			done = append(done, id)
			continue
		}
		if letter.Sink == sinkBigtable {
			x.Left += len(ids) - i - 1
			break
		}
	}
	for _, id := range slices.Backward(done) {
		if err := x.letters.Drop(ctx, id); err != nil && !errors.Is(err, deadletter.ErrNotFound) {
			return fmt.Errorf("delete applied dead letter %s: %w", id, err)
		}
		x.Applied++
	}
	return nil
}

// try applies one letter, and records the attempt of one that is refused again. An error means that other letters would
// fail as well.
func (x *item) try(ctx context.Context, letter *deadletter.Letter) (outcome.Outcome, error) {
	err := x.applyLetter(ctx, letter)
	out := outcome.OfChange(err)
	switch out.Action {
	case outcome.Proceed:
		return out, nil
	case outcome.Escalate:
		return out, fmt.Errorf("apply dead letter %s: %w", letter.ID, err)
	}
	x.refuse(letter.ID, out.Code, out.Reason)
	behind := out.Code == outcome.CodeDirty || isBehind(letter) && x.applied == nil
	now := x.clients.Now().Truncate(time.Millisecond)
	if err := x.letters.RecordRetry(ctx, letter.ID, out.Code, out.Reason, behind, now); err != nil {
		return out, fmt.Errorf("record outcome of dead letter %s: %w", letter.ID, err)
	}
	return out, nil
}

// applyLetter applies a letter to its sink.
func (x *item) applyLetter(ctx context.Context, letter *deadletter.Letter) error {
	c, err := letter.Change()
	if err != nil {
		return fmt.Errorf("%w: %w", change.ErrMalformed, err)
	}
	x.dec.Reset()
	if letter.Sink != sinkBigtable {
		return x.archive(ctx, c)
	}
	if err := x.table.Program.Change(&x.dec, c, &x.write); err != nil {
		return err
	}
	if err := x.checkWrite(letter, c); err != nil {
		return err
	}
	if err := x.sink.Apply(ctx, x.table.Target, &x.write); err != nil {
		if outcome.OfChange(err).Action == outcome.DeadLetter {
			return err
		}
		return exit.Bigtable(err)
	}
	x.applied = c
	return nil
}

// checkWrite refuses a write that Bigtable would accept but that would be wrong: one that deletes what other items
// wrote to the row later, and one that depends on an earlier change that was never applied.
func (x *item) checkWrite(letter *deadletter.Letter, c *change.Change) error {
	for i := range x.write.Rows {
		if row := &x.write.Rows[i]; row.Exclusive && row.Class != transform.ClassR {
			return &transform.Refusal{Code: codeCascade,
				What: "the removal would delete its whole row, with what other items wrote there later; " +
					"delete the item's part of the row by hand, then drop the letter"}
		}
	}
	switch {
	case x.write.Heals,
		x.applied == nil && !isBehind(letter),
		x.applied != nil && sameImage(x.applied.New, c.Old):
		return nil
	}
	return &transform.Refusal{Code: outcome.CodeDirty,
		What: "the change before it was never applied, so what the item has in Bigtable is not known; " +
			"the item needs a resync, or a row written by hand"}
}

// isBehind reports whether the change before the letter's was a dead letter too. In letters of older versions only the
// code shows that.
func isBehind(l *deadletter.Letter) bool { return l.Behind || l.Code == outcome.CodeDirty }

// sameImage reports whether two images of an item are equal or both absent. Equal sets with another order compare as
// different; then the letter stays.
func sameImage(a, b []byte) bool {
	if a == nil || b == nil || bytes.Equal(a, b) {
		return (a == nil) == (b == nil)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// archive writes the event of a change. Each event has an id of its own, so their order does not matter.
func (x *item) archive(ctx context.Context, c *change.Change) error {
	event, err := x.table.Program.Archive(&x.dec, c)
	if err != nil || event == nil {
		return err
	}
	arch, err := x.clients.Archive(ctx)
	if err != nil {
		return err
	}
	if arch == nil {
		return &transform.Refusal{Code: "archive", What: "the configuration has no archive"}
	}
	return arch.Write(ctx, []*transform.Event{event})
}
