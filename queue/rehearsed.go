package queue

import (
	"context"
	"fmt"
)

// PublishRehearsal publishes the result of a rehearsed cutover to the processes that replicate the
// pipeline now. Nothing stores it, and it may be lost: a rehearsal leaves nothing behind.
func (q *Queue) PublishRehearsal(pipeline string, data []byte) error {
	if err := q.conn.Publish(rehearsedSubject(pipeline), data); err != nil {
		return fmt.Errorf("publish the result of the rehearsal to the replicators: %w", err)
	}
	return nil
}

// Rehearsals calls f with each result that PublishRehearsal publishes, until ctx ends.
func (q *Queue) Rehearsals(ctx context.Context, pipeline string, f func(data []byte)) error {
	if err := q.conn.Listen(ctx, rehearsedSubject(pipeline), f); err != nil {
		return fmt.Errorf("subscribe to rehearsals: %w", err)
	}
	return nil
}
