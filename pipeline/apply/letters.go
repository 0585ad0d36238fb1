package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// codeCascade is the code of a letter that would delete what other items wrote later. Only a retry
// sets it.
const codeCascade = "cascade"

// heldLetter is a dead letter of the item that is resynced.
type heldLetter struct {
	*deadletter.Letter
	change *change.Change // nil: the letter is a copy's, or cannot be read

	rows     [][]byte         // that its images have in the target
	outlives bool             // it may write what stays when its item is gone, which a put of the item does not repair
	applied  bool             // in this try
	refused  *outcome.Outcome // in this try
}

// get loads a dead letter; nil when it was dropped meanwhile.
func (l *DeadLetters) get(ctx context.Context, ref letterRef) (*heldLetter, error) {
	letter, err := l.stored.Get(ctx, ref.id)
	if errors.Is(err, deadletter.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read dead letter %s: %w", ref.id, err)
	}
	x := &heldLetter{Letter: letter}
	if c, err := letter.Change(); err == nil {
		x.change = c
	}
	return x, nil
}

// loadLetters loads the item's dead letters in version order, with the rows that their images have:
// what the target holds of the item may be there.
func (x *resyncing) loadLetters(ctx context.Context, refs []letterRef) error {
	for _, ref := range refs {
		l, err := x.worker.letters.get(ctx, ref)
		if err != nil {
			return err
		}
		if l == nil || !x.concernsItem(l) {
			continue
		}
		if l.change != nil && l.Sink == checkpoint.SinkBigtable {
			l.rows = x.rowsOf(l.change)
			l.outlives = x.mayOutlive(l.change)
		}
		x.letters = append(x.letters, l)
	}
	return nil
}

// concernsItem reports whether a letter with the hash of the item's key has that key. A letter that
// cannot be read belongs to no item: it can only be dropped.
func (x *resyncing) concernsItem(l *heldLetter) bool {
	keys := []byte(l.Keys)
	if l.change != nil {
		keys = l.change.Keys
	}
	if keys == nil {
		return false
	}
	key, err := x.canonical(keys)
	return err == nil && bytes.Equal(key, x.key)
}

// rowsOf returns the rows of a change's images. An image that the mapping refuses was never
// written.
func (x *resyncing) rowsOf(c *change.Change) (rows [][]byte) {
	for _, raw := range [][]byte{c.Old, c.New} {
		if raw == nil {
			continue
		}
		x.dec.Reset()
		img, err := x.dec.Image(raw)
		if err != nil {
			continue
		}
		projected, err := x.o.Table.Program.Project(img)
		if err != nil {
			continue
		}
		for i := range projected {
			rows = append(rows, bytes.Clone(projected[i].Key))
		}
	}
	return rows
}

// rows returns the further rows that may hold the item.
func (x *resyncing) rows() [][]byte {
	rows := x.item.Rows
	for _, l := range x.letters {
		rows = append(slices.Clip(rows), l.rows...)
	}
	return rows
}

// mayOutlive reports whether a change may write or delete what a put of its item does not make
// true: archived copies, histories, aggregates, and other items' cells in a row that the removal
// takes along.
func (x *resyncing) mayOutlive(c *change.Change) bool {
	return len(x.o.Table.Program.MayOutlive()) > 0 || x.turns != nil && c.Op == change.Remove
}

// isLate reports whether a letter is applied after the put, if at all. Before it, the rows may hold
// what an earlier retry has put, and the letter would bring older content back.
func (x *resyncing) isLate(l *heldLetter) bool {
	return l.change != nil && l.Sink == checkpoint.SinkBigtable && l.Version > x.item.Version && !l.outlives &&
		x.turns == nil &&
		x.o.Table.Program.CanCoalesce()
}

// applyLetters tries the letters of Bigtable that the put does not make needless, in version order.
// Before the put that is those that may write what outlives the item: a removal by TTL archives
// what the put would delete. Late ones are above the put and come after it, if that has left the
// rows as they were.
//
// Rule 5: once a letter above the version of the put is refused, no later one is applied.
func (x *resyncing) applyLetters(ctx context.Context, late bool) error {
	var before *change.Change // the change of the letter before, if that was applied
	stopped := false
	for _, l := range x.letters {
		below := l.Version <= x.item.Version
		if l.change == nil || l.Sink != checkpoint.SinkBigtable || below && !l.outlives || x.isLate(l) != late {
			before = nil
			continue
		}
		if stopped && !below {
			continue
		}
		err := x.applyLetter(ctx, l, before)
		before = nil
		switch out := outcome.OfChange(err); out.Action {
		case outcome.Proceed:
			l.applied, before = true, l.change
		case outcome.DeadLetter:
			l.refused, stopped = &out, !below
		default:
			return fmt.Errorf("apply dead letter %s: %w", l.ID, err)
		}
	}
	return nil
}

// applyLetter applies a letter at its own version. before is the change before it, if that was
// applied just now.
func (x *resyncing) applyLetter(ctx context.Context, l *heldLetter, before *change.Change) error {
	x.dec.Reset()
	if err := x.o.Table.Program.Change(x.dec, l.change, &x.write); err != nil {
		return err
	}
	if err := x.checkWrite(l, before); err != nil {
		return err
	}
	if len(x.write.Rows) == 0 {
		return nil
	}
	if err := x.shared.bigtable.ApplyInCopy(ctx, x.o.Target, &x.write, x.o.MayWrite); err != nil {
		return &outcome.SinkError{Err: err}
	}
	return nil
}

// checkWrite refuses a write that Bigtable would accept but that would be wrong: one that deletes
// what other items wrote to the row later, and one that depends on an earlier change that was never
// applied, unless the put follows.
func (x *resyncing) checkWrite(l *heldLetter, before *change.Change) error {
	for i := range x.write.Rows {
		if row := &x.write.Rows[i]; row.Exclusive && row.Class != transform.ClassR {
			return &transform.Refusal{Code: codeCascade,
				What: "the removal would delete its whole row, with what other items wrote there later; " +
					"resync the other items of the row, then drop the letter"}
		}
	}
	behind := l.Behind || l.Code == outcome.CodeDirty
	switch {
	case l.Version <= x.item.Version, x.write.Heals,
		before == nil && !behind,
		before != nil && protocol.SameImage(before.New, l.change.Old):
		return nil
	}
	return &transform.Refusal{Code: outcome.CodeDirty,
		What: "the change before it was never applied, so what the item has in Bigtable is not known; it is resynced later"}
}

// blockedBy returns why the item must not be put: a removal by TTL is refused again, and what it
// would archive is the last copy of the expired item, which the put would delete.
func (x *resyncing) blockedBy() *outcome.Outcome {
	for _, l := range x.letters {
		if l.refused != nil && l.refused.Code != codeCascade && l.change.TTL && l.Version <= x.item.Version {
			return &outcome.Outcome{Action: outcome.DeadLetter, Code: l.refused.Code, Reason: fmt.Sprintf(
				"dead letter %s, a deletion by TTL, must be applied or dropped first: %s", l.ID, l.refused.Reason)}
		}
	}
	return nil
}

// refuseLetter stores why the item was refused in the first of its letters that the put, or the
// write after it, would have made needless. It does nothing if a letter was refused in this try:
// its own reason is more specific.
func (x *resyncing) refuseLetter(why *outcome.Outcome) {
	for _, l := range x.letters {
		if l.refused != nil {
			return
		}
	}
	for _, l := range x.letters {
		if l.Sink == checkpoint.SinkBigtable && !l.applied && (l.Version <= x.item.Version || x.isLate(l)) {
			l.refused = why
			return
		}
	}
}

// settleLetters deletes the letters that were applied or that the put made needless, and records
// the tries of the others. It is the last step: an item stops being dirty only when its rows are
// durable.
func (x *resyncing) settleLetters(ctx context.Context) error {
	if len(x.letters) == 0 {
		return nil
	}
	put := x.out.Refused == nil
	// Newest first: wherever this ends, the earliest letters remain, and applying those again
	// changes nothing (Rule 5).
	var gone []string
	for _, l := range slices.Backward(x.letters) {
		if l.Sink != checkpoint.SinkBigtable {
			continue
		}
		if l.applied || put && l.Version <= x.item.Version && !l.outlives {
			gone = append(gone, l.ID)
			continue
		}
		if err := x.keep(ctx, l, put); err != nil {
			return err
		}
	}
	n, err := x.worker.letters.drop(ctx, x.item.Hash, gone)
	x.out.LettersApplied += n
	if err != nil {
		return err
	}
	err = x.archiveLetters(ctx)
	x.out.LettersWaiting = len(x.letters) - x.out.LettersApplied - len(x.out.LettersLeft)
	return err
}

// keep records the try of a letter that stays. put is set when the rows of the item are true at its
// version.
func (x *resyncing) keep(ctx context.Context, l *heldLetter, put bool) error {
	r := deadletter.Retried{Code: l.Code, Reason: l.Reason, Behind: l.Behind, At: x.retriedAt()}
	if l.refused != nil {
		r.Code, r.Reason = l.refused.Code, l.refused.Reason
	}
	if put && l.Version <= x.item.Version {
		r.Resynced, r.Behind = x.item.Version, false
	} else if put {
		x.heat(l.Version)
	}
	left := LetterLeft{ID: l.ID, Code: r.Code, Reason: r.Reason}
	if put && r.Resynced == 0 {
		left.Until = x.neededUntil(l)
	}
	if left.Until > 0 {
		x.out.LettersLater++
		x.out.LettersUntil = max(x.out.LettersUntil, left.Until)
	}
	if put && x.isLate(l) && x.out.Written+x.out.Equal > 0 {
		r.Behind = true // some of the rows hold what was read by now
	}
	if l.refused != nil || r.Resynced > 0 {
		x.out.LettersLeft = append(x.out.LettersLeft, left)
	} else if r.Behind == l.Behind {
		return nil // it was not tried
	}
	return x.worker.letters.recordRetry(ctx, x.item.Hash, l.ID, r)
}

// neededUntil returns from when on a reading of the item makes a letter above the version of the
// put needless: its version is above the letter then, or above the rows that hold something else
// now. It is 0 for a letter of what outlives its item, and of an archive.
func (x *resyncing) neededUntil(l *heldLetter) change.Millis {
	if l.outlives || l.change == nil || l.Sink != checkpoint.SinkBigtable {
		return 0
	}
	until := change.Millis(l.Version) + ResyncMargin
	if x.caughtUp > 0 {
		until = min(until, x.caughtUp)
	}
	return until
}

// retriedAt returns the time to record, in the precision that is stored.
func (x *resyncing) retriedAt() time.Time { return x.shared.now().Time().Truncate(time.Millisecond) }

// archiveLetters writes the events of the item's letters of the archive, and publishes the events
// of its letters of the subject. Each event has an id of its own, so their order does not matter.
func (x *resyncing) archiveLetters(ctx context.Context) error {
	var gone []string
	for _, l := range x.letters {
		var err error
		switch {
		case l.Sink == checkpoint.SinkArchive && l.change != nil:
			err = x.archiveLetter(ctx, l.change)
		case l.Sink == SinkSubject && l.Event:
			err = x.publishLetter(ctx, l)
		default:
			continue
		}
		if err == nil {
			gone = append(gone, l.ID)
			continue
		}
		if l.refused = archiveRefusal(ctx, err); l.refused == nil {
			return fmt.Errorf("archive dead letter %s: %w", l.ID, err)
		}
		if err := x.keep(ctx, l, false); err != nil {
			return err
		}
	}
	n, err := x.worker.letters.drop(ctx, x.item.Hash, gone)
	x.out.LettersApplied += n
	return err
}

// archiveRefusal returns why a letter of the archive stays; nil for an error that does not concern
// the archive. An archive that cannot be written keeps only its own letters: the caller tries
// again, and the letters of other items and sinks need not wait.
func archiveRefusal(ctx context.Context, err error) *outcome.Outcome {
	if sink := (*outcome.SinkError)(nil); errors.As(err, &sink) && ctx.Err() == nil {
		out := outcome.OfSink(ctx, err)
		return &out
	}
	return refusalOf(err)
}

// archiveLetter writes the event of a change, if it makes one.
func (x *resyncing) archiveLetter(ctx context.Context, c *change.Change) error {
	x.dec.Reset()
	event, err := x.o.Table.Program.Archive(x.dec, c)
	if err != nil || event == nil {
		return err
	}
	if x.o.Archive == nil {
		return &transform.Refusal{Code: "archive", What: "the configuration has no archive"}
	}
	if event.Class = x.o.Table.Classes.of(event.Class); event.Class == "" {
		return nil // it is not archived any more
	}
	if _, err := x.o.Archive.Store(ctx, []ledger.Record{{Event: event, Verdict: ledger.Late}}); err != nil {
		return &outcome.SinkError{Err: err}
	}
	return nil
}

// canonical returns the canonical form of a key.
func (w *worker) canonical(keys []byte) ([]byte, error) {
	w.dec.Reset()
	return w.o.Table.canonical(w.dec, keys)
}

// heat notes that a row or letter of the item has version v, above the version of the resync: see
// ResyncOutcome.Hot.
func (x *resyncing) heat(v change.Version) {
	x.out.Hot = max(x.out.Hot, change.Millis(v)+ResyncMargin)
}

// refusalOf returns why the item is not taken; nil for an error that does not concern the item
// alone.
func refusalOf(err error) *outcome.Outcome {
	if out := outcome.OfChange(err); out.Action == outcome.DeadLetter {
		return &out
	}
	return nil
}
