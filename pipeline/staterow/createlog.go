package staterow

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// CreateLog creates the log of a table; another instance may have been faster. target is a target that no other table
// may have, empty where several may share it: the log is refused where another table has one with this target,
// whichever replicator of the pipeline has begun that.
func CreateLog(ctx context.Context, q *queue.Queue, table, target string) (*queue.Log, error) {
	token, err := q.KeptToken(ctx, table)
	if err != nil {
		return nil, err
	}
	if token == "" {
		token = rand.Text()
	}
	var alone []string
	if target != "" {
		alone = []string{target}
	}
	l, err := q.CreateLog(ctx, table, token, alone...)
	if err == nil {
		return l, nil
	}
	if conn.Taken(err) {
		return nil, &outcome.RefusedError{
			What: fmt.Sprintf("%s, the target of %s, is that of another table, which is replicated already", target, table),
			Hint: "give the table an entry of its own, with another target, or name it under except",
		}
	}
	if other, lookErr := q.Log(ctx, table); lookErr == nil {
		return other, nil // another instance was faster
	}
	if errors.Is(err, queue.ErrNoLog) {
		err = &outcome.StaleError{Err: err} // another instance was faster, and its log is not visible from here yet
	}
	return nil, err
}
