package pipeline

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/pipeline/staterow/lives"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// archivedOnly reports whether the table has no target: what is deleted from it is archived, and that is all.
func (t *Table) archivedOnly() bool { return t.Target == "" }

// rows returns where the table's row is kept.
func (e *env) rows() staterow.Store {
	if e.archivedOnly() {
		return &bucketRows{lives.New(e.o.Archive.Objects), e.o.Archive}
	}
	return e.bigtable
}

// bucketRows keeps rows in the archive's bucket, once it is known that it creates a name only once.
type bucketRows struct {
	*lives.Store
	place *archiving.Place
}

// CreateState implements staterow.Store.
func (r *bucketRows) CreateState(ctx context.Context, s *bigtable.State) error {
	if err := r.place.Probe(ctx); err != nil {
		return err
	}
	return r.Store.CreateState(ctx, s)
}

// CompareAndSet implements staterow.Store.
func (r *bucketRows) CompareAndSet(ctx context.Context, old, next *bigtable.State) error {
	if err := r.place.Probe(ctx); err != nil {
		return err
	}
	return r.Store.CompareAndSet(ctx, old, next)
}

// endRecovery ends the recovery of a table without a target: it has no rows that could differ. The archive drops what
// it has already, and its hours say that a recovery was.
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

// serveArchived does what commands ask of the owner of a table without a target: its dead letters are tried again.
func (t *table) serveArchived(ctx context.Context, o apply.Options, r *resync.Requests) error {
	r.Archived = func(ctx context.Context, key []byte) (apply.ResyncOutcome, error) {
		item := &apply.ResyncItem{Keys: key, Hash: change.HashKey(key), Letters: true}
		return apply.RetryArchived(ctx, t.shared, &o, t.letters, item)
	}
	return r.Run(ctx)
}
