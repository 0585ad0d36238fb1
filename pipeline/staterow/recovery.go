package staterow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// Found is what a recovery looks at: the pipeline's row of a table, and its log, if there is one.
type Found struct {
	Row     *bigtable.State
	Log     *checkpoint.State // its fold; nil: there is no log, or it cannot be folded
	FoldErr error             // why it cannot be
	Created time.Time         // of the log; zero: there is none
	Noted   *protocol.LogNote // beside the row; nil: nothing
	Seen    protocol.LogSeen  // what the log has where the note points to
	Want    bigtable.Identity // what table, mapping and log are now
	Start   Start
	Date    change.Millis // the service's clock
	Lead    time.Duration // Periods.Lead of the configuration
}

// Recovery is a new life of a table with a log that cannot go on; or, for a table without its row,
// that row.
type Recovery struct {
	Why   string // the log cannot go on
	Life  uint64
	Floor change.Version // every version of the new life is above it; it is above every version given out before
	Lead  time.Duration
	Begun bool // it has begun already, and the owner goes on with it: Begin changes nothing

	// Restores is set when the log goes on as it is: only the row of its table is stored again.
	Restores bool

	row, next *bigtable.State
}

// PlanRecovery returns what a recovery would change; nil when the log can go on as it is. A refusal
// means that a recovery would not help, because something else than the log is wrong. A recovery
// that has begun is not begun again: no version was given out in its life yet, so another one would
// only put versions further ahead of the clock.
//
// Rule 5: versions must grow across lives. Every version of the life before is at most the
// service's clock at the read of its page and the reservation, and no page is read in that life
// after the row has changed.
func PlanRecovery(f Found) (*Recovery, error) {
	if f.Row == nil && f.Want.Target == "" {
		return nil, &outcome.RefusedError{
			What: "archive.url holds nothing of " + f.Want.Table,
			Hint: "if it has never run: `replicator run`; else " + lifeHint,
		}
	}
	if f.Row == nil {
		return f.restoreRow()
	}
	if fence := f.Row.Fenced; fence != nil { // Rule 12
		return nil, &outcome.RefusedError{
			What: fmt.Sprintf("the table is fenced since %s for cutover %s: a recovery would write what DynamoDB holds over "+
				"what the application has written since", fence.Time.UTC().Format(time.RFC3339), fence.ID),
			Hint: "if the application has not moved to Bigtable: `replicator cutover --undo`, then recover",
		}
	}
	other := f.Want
	other.LogCreated = f.Row.Identity.LogCreated
	if refused := CheckIdentity(f.Row, other); refused != nil { // the table, the mapping or the target
		return nil, refused
	}
	why := f.why()
	if why == "" {
		return nil, nil
	}
	if f.goesOn() {
		return &Recovery{Why: why, Life: f.Row.Life, Floor: f.Row.Floor, Lead: f.Row.Lead, Begun: true}, nil
	}
	lead := max(f.Row.Lead, f.Lead)
	next := *f.Row
	next.Life++
	next.Floor = protocol.FloorAfter(f.Row.Floor, f.Date, lead)
	next.Lead = time.Duration(int64(next.Floor)-int64(f.Date))*time.Millisecond + f.Lead
	next.Issued, next.Recovering = false, true
	if next.OldLog = f.Created.UTC(); f.Created.IsZero() {
		next.OldLog = f.Row.Identity.LogCreated
	}
	return &Recovery{Why: why, Life: next.Life, Floor: next.Floor, Lead: next.Lead, row: f.Row, next: &next}, nil
}

// restoreRow returns how the row of a table is stored again that is gone, from a log that holds
// changes.
func (f *Found) restoreRow() (*Recovery, error) {
	what := "the pipeline has no row for " + f.Want.Table + " in " + tableschema.StateTable
	switch {
	case f.FoldErr != nil:
		return nil, &outcome.RefusedError{
			What: what + ", and its log, which tells what was in it, cannot be read: " + f.FoldErr.Error(),
			Hint: "see \"Damaged log\" in docs/operations.md; where the log is gone for good, start under another pipeline " +
				"name with a new target",
		}
	case f.Log == nil || f.Log.LiveStream() == nil:
		return nil, &outcome.RefusedError{
			What: what + ", nor a log",
			Hint: "if it has never run: `replicator run`; else nothing is known about the versions in the target: start " +
				"under another pipeline name with a new target",
		}
	case !ProvesItself(f.Log):
		return nil, &outcome.RefusedError{
			What: what + ", and its log does not name the table",
			Hint: "start under another pipeline name with a new target",
		}
	}
	if _, replicated := f.Log.Marks[checkpoint.SinkBigtable]; !replicated {
		return nil, missingRow(f.Log, f.Want)
	}
	if refused := CheckStored(f.Log, f.Want, f.Start); refused != nil {
		return nil, refused
	}
	row := rowOf(f)
	return &Recovery{Why: what, Life: row.Life, Floor: row.Floor, Lead: row.Lead, Restores: true, next: row}, nil
}

// why returns why the log cannot go on; "" when it can.
func (f *Found) why() string {
	switch {
	case f.Row.Recovering:
		return "a recovery has begun and is not complete"
	case f.FoldErr != nil:
		return "the log cannot be read: " + f.FoldErr.Error()
	case f.Created.IsZero():
		return logMissing
	}
	if refused := CheckIdentity(f.Row, f.Want); refused != nil {
		return refused.What
	}
	if refused := CheckLog(f.Row, f.Log, f.Want, f.Start); refused != nil {
		return refused.What
	}
	if protocol.JudgeLog(f.Noted, f.Seen).Older() {
		return OlderCopy(f.Want.Table, f.Noted, f.Seen).What
	}
	return ""
}

// goesOn reports whether the owner goes on with a recovery that has begun: with the log that it has
// made for it, or by making one. Any other log than the one that the recovery leaves, above all one
// that cannot be read, is refused there.
func (f *Found) goesOn() bool {
	return f.Row.Recovering && (f.Created.IsZero() || IsOldLog(f.Row, f.Created, f.Log) ||
		f.FoldErr == nil && CheckLog(f.Row, f.Log, f.Want, f.Start) == nil)
}

// Begin stores the new life in the pipeline's row, or the row. Nothing else is changed: the owner
// takes all later steps, at its next try. bigtable.ErrStateChanged means that another process
// changed the row meanwhile.
func (r *Recovery) Begin(ctx context.Context, store Store) error {
	if r.Begun {
		return nil
	}
	if r.Restores {
		switch err := store.CreateState(ctx, r.next); {
		case errors.Is(err, bigtable.ErrStateExists):
			return fmt.Errorf("store row: %w", bigtable.ErrStateChanged)
		case err != nil:
			return fmt.Errorf("store row: %w", err)
		}
		return nil
	}
	if err := store.CompareAndSet(ctx, r.row, r.next); err != nil {
		return fmt.Errorf("begin life %d: %w", r.Life, err)
	}
	return nil
}

// IsOldLog reports whether a log is one that a recovery leaves: the one that the row names, or one
// of an earlier life. A log that cannot be read now proves nothing: it may be the new one, which
// another owner may have begun to fill since the row was read.
func IsOldLog(row *bigtable.State, created time.Time, stored *checkpoint.State) bool {
	return created.Equal(row.OldLog) || stored != nil && stored.Epoch > 0 && stored.Life < row.Life
}

// rowOf returns the lost row of a table as the log shows it. The log holds all that the row held,
// but for the cluster of the app profile. For the lead, it holds how far versions did run ahead,
// not how far they might.
func rowOf(f *Found) *bigtable.State {
	id := f.Want
	id.LogCreated, id.MappingHash = f.Created.UTC(), f.Log.Identity.Mapping
	above := max(f.Log.Floor(), f.Log.HighestVersion())
	row := &bigtable.State{
		Identity: id, Life: f.Log.Life, Floor: f.Log.Floor(), Issued: true,
		Lead: max(f.Lead, leastReserved) + max(0, time.Duration(int64(above)-int64(f.Date))*time.Millisecond),
	}
	if fence := f.Log.Fence; fence != nil { // Rule 12
		row.Fenced = &bigtable.Fenced{ID: fence.ID, Time: fence.At.Time().UTC()}
	}
	return row
}
