package pipeline

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
)

// The steps of a recovery, in this order; each may be repeated, and after a crash between any two the next start goes
// on:
//
//	row {life + 1, floor, recovering, creation of the old log} → old log deleted, new one made → row {creation} →
//	claim → start entry {recover} → row {recovering: off, issued: true} → first frame
//
// The operator takes the first step. While the row is recovering, nothing goes on with the old log:
// a log of an earlier life, or a log started with a lower floor than the row's, is never read on.

// leaveOldLog deletes the log that a recovery leaves, if it is still there, and reports whether it
// did. stored is what the log holds; nil: it could not be read now, because of unread. A log that
// cannot be opened is set aside.
func (t *table) leaveOldLog(ctx context.Context, stored *checkpoint.State, unread error) (left bool, err error) {
	if unopened := (*queue.UnopenedError)(nil); errors.As(unread, &unopened) {
		t.log.Warn("recover: the old log is set aside", zap.String("stream", unopened.Stream))
		return true, t.queue.SetAside(unopened)
	}
	l, row := t.currentLog(), t.row.Known()
	if l == nil || !staterow.IsOldLog(row, l.Created(), stored) {
		return false, nil
	}
	t.log.Warn("recover: the old log is deleted", zap.Time("created", l.Created()), zap.Uint64("life", row.Life))
	if err := t.queue.DeleteLog(ctx, l); err != nil {
		return false, err
	}
	t.stream.Store(nil)
	return true, nil
}
