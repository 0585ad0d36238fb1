package pipeline

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// maxSkew is how far the service's clocks may differ from each other: how far the Date of a reply may lie before the
// creation of a record that was read earlier.
const maxSkew = 30 * time.Second

// Found is what a recovery looks at: the pipeline's row of a table, and its log, if there is one.
type Found struct {
	Row     *bigtable.State
	Log     *checkpoint.State // its fold; nil: there is no log, or it cannot be folded
	FoldErr error             // why it cannot be
	Created time.Time         // of the log; zero: there is none
	Want    bigtable.Identity // what table, mapping and log are now
	Start   Start
	Date    change.Millis // the service's clock
	Lead    time.Duration // Periods.Lead of the configuration
}

// Recovery is a new life of a table whose log cannot go on.
type Recovery struct {
	Why   string // the log cannot go on
	Life  uint64
	Floor change.Version // every version of the new life is above it; it is above every version given out before
	Lead  time.Duration
	Begun bool // it has begun already, and the owner goes on with it: Begin changes nothing

	row, next *bigtable.State
}

// PlanRecovery returns what a recovery would change; nil when the log can go on as it is. A *RefusedError means that a
// recovery would not help, because something else than the log is wrong. A recovery that has begun is not begun again:
// no version was given out in its life yet, so another one would only put versions further ahead of the clock.
//
// Rule 5: versions must grow across lives. Every version of the life before is at most the service's clock at the read
// of its page and the reservation, and no page is read in that life after the row has changed.
func PlanRecovery(f Found) (*Recovery, error) {
	if f.Row == nil {
		return nil, &RefusedError{
			What: "the pipeline has no row for " + f.Want.Table + " in " + bigtable.StateTable,
			Hint: "if it has never run: `replicator run`; else nothing is known about the versions in the target: start " +
				"under another pipeline name with a new target",
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
	next.Floor = max(f.Row.Floor, change.Version(f.Date)+change.Version((time.Second+maxSkew+lead).Milliseconds()))
	next.Lead = time.Duration(int64(next.Floor)-int64(f.Date))*time.Millisecond + f.Lead
	next.Issued, next.Recovering = false, true
	if next.OldLog = f.Created.UTC(); f.Created.IsZero() {
		next.OldLog = f.Row.Identity.LogCreated
	}
	return &Recovery{Why: why, Life: next.Life, Floor: next.Floor, Lead: next.Lead, row: f.Row, next: &next}, nil
}

// why returns why the log cannot go on; "" when it can.
func (f *Found) why() string {
	switch {
	case f.Row.Recovering:
		return "a recovery has begun and is not complete"
	case f.Created.IsZero():
		return logMissing
	case f.FoldErr != nil:
		return "the log cannot be read: " + f.FoldErr.Error()
	}
	if refused := CheckIdentity(f.Row, f.Want); refused != nil {
		return refused.What
	}
	if refused := CheckLog(f.Row, f.Log, f.Want, f.Start); refused != nil {
		return refused.What
	}
	return ""
}

// goesOn reports whether the owner goes on with a recovery that has begun: with the log that it has made for it, or by
// making one. Any other log than the one that the recovery leaves, above all one that cannot be read, is refused there.
func (f *Found) goesOn() bool {
	return f.Row.Recovering && (f.Created.IsZero() || isOldLog(f.Row, f.Created, f.Log) ||
		f.FoldErr == nil && CheckLog(f.Row, f.Log, f.Want, f.Start) == nil)
}

// Begin stores the new life in the pipeline's row. Nothing else is changed: all later steps are those of the owner, at
// its next try. bigtable.ErrStateChanged means that somebody else changed the row meanwhile.
func (r *Recovery) Begin(ctx context.Context, client *bigtable.Client) error {
	if r.Begun {
		return nil
	}
	if err := client.CompareAndSet(ctx, r.row, r.next); err != nil {
		return fmt.Errorf("begin life %d: %w", r.Life, err)
	}
	return nil
}

// The steps of a recovery, in this order; each may be repeated, and after a crash between any two the next start goes
// on:
//
//	row {life + 1, floor, recovering, creation of the old log} → old log deleted, new one made → row {creation} →
//	claim → start entry {recover} → row {recovering: off, issued: true} → first frame
//
// The first step is the operator's. While the row is recovering, nothing goes on with the old log: a log of an earlier
// life, or one whose start has a lower floor than the row's, is never read on.

// leaveOldLog deletes the log that a recovery leaves, if it is still there, and reports whether it did. stored is what
// the log holds; nil: it could not be read now.
func (t *table) leaveOldLog(ctx context.Context, stored *checkpoint.State) (left bool, err error) {
	l, row := t.currentLog(), t.row.stored
	if l == nil || !isOldLog(row, l.Created(), stored) {
		return false, nil
	}
	t.log.Warn("recover: the old log is deleted", zap.Time("created", l.Created()), zap.Uint64("life", row.Life))
	if err := t.queue.DeleteLog(ctx, l); err != nil {
		return false, err
	}
	t.stream.Store(nil)
	return true, nil
}

// isOldLog reports whether a log is one that a recovery leaves: the one that the row names, or one of an earlier life.
// A log that cannot be read now proves nothing: it may be the new one, which another owner may have begun to fill since
// the row was read.
func isOldLog(row *bigtable.State, created time.Time, stored *checkpoint.State) bool {
	return created.Equal(row.OldLog) || stored != nil && stored.Epoch > 0 && stored.Life < row.Life
}

// recovers reports whether the table's row says that a recovery has begun.
func (t *table) recovers() bool {
	return !t.row.stale && t.row.stored != nil && t.row.stored.Recovering
}

// firstReplay is how far before the new life its reading begins: the clocks of the service differ, and a change that is
// read twice leaves the same cells.
const firstReplay = 5 * time.Minute

// recoveredStart returns the start entry of a new life. Its records from before t0 are not applied to Bigtable: the
// rows hold them, or a later state, or the resync that follows covers them, and readers would see the rows go back. An
// archive takes all that is left of them.
func (t *table) recoveredStart(ls source.Listing) *checkpoint.Start {
	start := &checkpoint.Start{
		Mode: t.o.Start.mode(), Floor: t.row.stored.Floor, Recover: true, After: ls.Started,
		At: ls.Started - change.Millis(firstReplay.Milliseconds()),
	}
	if t.Archive {
		start.At = 0
	}
	return start
}
