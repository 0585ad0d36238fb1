package pipeline

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
)

// archivedOnly reports whether the table has no target: what is deleted from it is archived, and
// that is all.
func (t *Table) archivedOnly() bool { return t.Target == "" }

// rows returns where the table's row is kept.
func (e *env) rows() staterow.Store {
	if e.archivedOnly() {
		return staterow.NewProbedBucketStore(e.o.Archive.Objects, e.o.Archive.Probe)
	}
	return e.bigtable
}

// endRecovery ends the recovery of a table without a target: it has no rows that could differ. The
// archive drops what it has already, and its hours say that a recovery was.
func (t *table) endRecovery(ctx context.Context, w *queue.Writer) error {
	p := w.State().Resync
	if !t.archivedOnly() || p == nil {
		return nil
	}
	if _, err := w.Append(ctx, &checkpoint.Healed{ID: p.ID, Date: t.now()}, nil); err != nil {
		return fmt.Errorf("append end of recovery: %w", err)
	}
	return nil
}

// serveArchived does what commands ask of the owner of a table without a target: its dead letters
// are tried again.
func (t *table) serveArchived(ctx context.Context, o apply.Options, r *resync.Requests) error {
	r.Archived = func(ctx context.Context, key []byte) (apply.ResyncOutcome, error) {
		item := &apply.ResyncItem{Keys: key, Hash: change.HashKey(key), Letters: true}
		return apply.RetryArchived(ctx, t.shared, &o, t.letters, item)
	}
	return r.Run(ctx)
}
