package staterow

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

// CreateLog creates the log of a table; another instance may have been faster.
func CreateLog(ctx context.Context, q *queue.Queue, table string) (*queue.Log, error) {
	token, err := q.KeptToken(ctx, table)
	if err != nil {
		return nil, err
	}
	if token == "" {
		token = rand.Text()
	}
	l, err := q.CreateLog(ctx, table, token)
	if err == nil {
		return l, nil
	}
	if other, lookErr := q.Log(ctx, table); lookErr == nil {
		return other, nil // another instance was faster
	}
	if errors.Is(err, queue.ErrNoLog) {
		err = &outcome.StaleError{Err: err} // another instance was faster, and its log is not visible from here yet
	}
	return nil, err
}
