package staterow

import (
	"context"
	"errors"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Store keeps the row of a table: the state table in Bigtable or, for a table without a target, the
// archive's bucket (BucketStore). The methods have the contracts of bigtable.Client.
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

// Explain adds class and hint to an error of a row that ends a command.
func Explain(err error) error {
	var foreign *OtherPipelineError
	var stored *bucket.Error
	switch {
	case errors.As(err, &foreign):
		return failure.With(failure.Unready, foreign.Hint(), err)
	case errors.As(err, &stored):
		return failure.With(failure.Unready, stored.Hint, err)
	}
	return bigtable.Explain(err)
}
