package staterow

import (
	"context"
	"errors"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Store keeps the row of a table: the state table in Bigtable or, for a table without a target, the archive's bucket
// (BucketStore). The methods are those of bigtable.Client.
type Store interface {
	LoadState(ctx context.Context, pipeline, table string) (*bigtable.State, error)
	CreateState(ctx context.Context, s *bigtable.State) error
	CompareAndSet(ctx context.Context, old, next *bigtable.State) error
	Reserve(ctx context.Context, s *bigtable.State, lead time.Duration) (*bigtable.State, error)
}

// isTransient reports whether an error of a Store may pass by itself.
func isTransient(err error) bool {
	var own *bucket.Error
	if errors.As(err, &own) {
		return own.Class == failure.Transient
	}
	return bigtable.Classify(err) == failure.Transient
}
