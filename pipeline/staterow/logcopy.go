package staterow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// Beside the row stands a note of an entry that was acknowledged, which the owner renews each
// minute, at each begin of work and at its end. A log without that entry is an older copy: it would
// go on from the positions of the copy, with the pauses, fences, waivers and orders of then. A
// table without a target has no note: its row is in the archive's bucket, where each change is an
// object for ever.

// notePatience is how long a look at the row may take.
const notePatience = 10 * time.Second

// CheckCopy returns why a claimed log may not be gone on with, because it is an older copy of the
// one that was read into. Other errors say that this is not known.
func (r *Row) CheckCopy(ctx context.Context, l *queue.Log) error {
	if r.o.Target == "" {
		return nil
	}
	note, err := r.loadNote(ctx)
	if note == nil {
		r.whole.Store(err == nil)
		return err
	}
	seen, seenErr := l.SeenAt(ctx, note.Seq)
	if seenErr != nil {
		return errors.Join(err, seenErr)
	}
	if copied := protocol.JudgeLog(note, seen); copied.Older() {
		r.log.Error("the log is an older copy", zap.Uint64("noted", note.Seq), zap.Uint64("last", seen.Last),
			zap.Time("created", seen.Created))
		r.whole.Store(false)
		return OlderCopy(r.o.Source, note, seen)
	}
	r.whole.Store(err == nil)
	return err
}

// loadNote returns the newest note that is known; nil if there is none. With an error it is the
// newest note that this process has stored or read.
func (r *Row) loadNote(ctx context.Context) (*protocol.LogNote, error) {
	ctx, cancel := context.WithTimeout(ctx, notePatience)
	defer cancel()
	stored, err := r.o.Client.LoadLogNote(ctx, r.o.Pipeline, r.o.Source)
	if err != nil {
		return r.noted.Load(), err
	}
	note := NoteOf(stored)
	if known := r.noted.Load(); note == nil || known != nil && known.Seq > note.Seq {
		note = known
	}
	return note, nil
}

// NoteOf returns a stored note as the judge takes it; nil for none.
func NoteOf(n *bigtable.LogNote) *protocol.LogNote {
	if n == nil {
		return nil
	}
	note := &protocol.LogNote{Created: n.Created, Seq: n.Seq}
	copy(note.Hash[:], n.Hash)
	return note
}

// OlderCopy is the refusal of a log that is an older copy.
func OlderCopy(table string, n *protocol.LogNote, seen protocol.LogSeen) *outcome.RefusedError {
	what := fmt.Sprintf("the log is an older copy: it ends at entry %d, and entry %d was acknowledged", seen.Last, n.Seq)
	if seen.Last >= n.Seq {
		what = fmt.Sprintf("the log is an older copy that has grown since: its entry %d is not the one that was acknowledged",
			n.Seq)
	}
	return &outcome.RefusedError{
		Code: outcome.CodeLogOlder, What: what,
		Hint: "with it, what was decided since would go back: pauses, waived gaps, orders. Put the newest copy of the " +
			"queue's directory or volume back; where it is gone, " + recoverCommand(table) + " begins a new life above all " +
			"versions, and says before what that takes",
	}
}

// Note stores that an entry was acknowledged, where CheckCopy has found that the log is no older
// copy. It reports whether the row is there.
func (r *Row) Note(ctx context.Context, n *protocol.LogNote) (there bool, err error) {
	if r.o.Target == "" || n == nil || !r.whole.Load() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, notePatience)
	defer cancel()
	there, err = r.o.Client.NoteLog(ctx, r.o.Pipeline, r.o.Source, bigtable.LogNote{
		Created: n.Created.UTC(), Seq: n.Seq, Hash: n.Hash[:], At: time.Now().UTC(),
	})
	if known := r.noted.Load(); err == nil && there && (known == nil || known.Seq < n.Seq) {
		r.noted.Store(n)
	}
	return there, err
}

// Look checks the row beside the work of a life: that it is there, and equals the row that this
// process holds. It stores the note of the log with it. A *outcome.RefusedError means that the row
// is gone, *outcome.StaleError that it must be read again; other errors, that it is not known.
//
// Rule 13: a row that is not found is looked for once more, in Bigtable by a conditional write; a
// table that is not found, by its description.
func (r *Row) Look(ctx context.Context, n *protocol.LogNote) error {
	if !r.Agrees() {
		return nil // Confirm reads it
	}
	before := r.current()
	if before == nil {
		return nil // it is to be read again: another process has changed it
	}
	found, err := r.loadOnce(ctx)
	if bigtable.Classify(err) == failure.Missing {
		return r.lookForTable(ctx, err)
	}
	none := errors.Is(err, bigtable.ErrNoState)
	if err != nil && !none {
		return err
	}
	there, err := r.Note(ctx, n)
	if err != nil {
		return err
	}
	if none {
		_, err := r.loadOnce(ctx)
		there = !errors.Is(err, bigtable.ErrNoState)
		if err != nil && there {
			return err
		}
	}
	switch {
	case none && !there:
		return r.noteGone()
	case !none && there:
		return r.compare(before, found)
	}
	return nil // one look says so, the other does not: the next one decides
}

// lookForTable returns the refusal of a table that lost its row with the whole table that held it,
// if a second look confirms it. missing is the answer to the first.
func (r *Row) lookForTable(ctx context.Context, missing error) error {
	if r.o.Target == "" {
		return missing
	}
	there, err := r.o.Client.HasTable(ctx, tableschema.StateTable)
	switch class := bigtable.Classify(err); {
	case err == nil && there:
		return fmt.Errorf("the table is described, and not found: %w", missing)
	case class == failure.Denied: // the role may not read descriptions
		if _, err := r.loadOnce(ctx); bigtable.Classify(err) != failure.Missing {
			return fmt.Errorf("the table is found again: %w", missing)
		}
	case err != nil:
		return err
	}
	gone := r.noteGone()
	refused := (*outcome.RefusedError)(nil)
	if errors.As(gone, &refused) {
		refused.What = tableMissing
		refused.Hint = "nothing is applied without it. `replicator schema --apply`, with the --config of `run`, makes the " +
			"table; then " + recoverCommand(r.o.Source) + " stores the row again, from the log"
	}
	return gone
}

// loadOnce loads the row with one attempt.
func (r *Row) loadOnce(ctx context.Context) (*bigtable.State, error) {
	ctx, cancel := context.WithTimeout(ctx, notePatience)
	defer cancel()
	return r.o.Store.LoadState(ctx, r.o.Pipeline, r.o.Source)
}

// current returns the row that this process holds; nil while it must be read again.
func (r *Row) current() *bigtable.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stale {
		return nil
	}
	return r.stored
}

// noteGone notes that the row is gone, and returns the refusal.
func (r *Row) noteGone() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// With the table that held it, the mapping's text and the row of the target are gone as well.
	r.stale, r.mappingStored, r.targetClaimed = true, false, false
	r.log.Error("the pipeline's row of the table is gone")
	return noRow(r.o.Source, r.o.Target)
}

var errReplaced = errors.New("the pipeline's row is not the one that is known")

// compare returns a *outcome.StaleError if the row that was found is not the one that this process
// held before and still holds. A row that was fenced or unfenced meanwhile is followed by an entry
// in the log, which ends the work.
func (r *Row) compare(before, found *bigtable.State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fenced := (before.Fenced == nil) != (found.Fenced == nil)
	if r.stored != before || r.stale || fenced || before.Same(found) {
		return nil
	}
	r.stale = true
	return &outcome.StaleError{Err: errReplaced}
}
