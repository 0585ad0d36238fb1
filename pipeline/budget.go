package pipeline

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// budget bounds the bytes of changes that are between the log and the sinks.
//
// Rule 9: back-pressure is bounded in bytes. An entry larger than the whole budget takes all of it, so that it
// goes through alone instead of never.
type budget struct {
	limit int64
	sem   *semaphore.Weighted
}

func newBudget(limit int64) *budget {
	return &budget{limit: limit, sem: semaphore.NewWeighted(limit)}
}

// take blocks until n bytes are free and returns what gives them back.
func (b *budget) take(ctx context.Context, n int) (release func(), err error) {
	w := min(int64(n), b.limit)
	if err := b.sem.Acquire(ctx, w); err != nil {
		return nil, err
	}
	return func() { b.sem.Release(w) }, nil
}
