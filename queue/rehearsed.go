package queue

import (
	"context"
	"fmt"
)

// TellRehearsal publishes what a rehearsal of a cutover has shown to the processes that replicate a
// pipeline now. Nothing stores it, and it may be lost: a rehearsal leaves nothing behind.
func (q *Queue) TellRehearsal(pipeline string, data []byte) error {
	if err := q.conn.Publish(rehearsedSubject(pipeline), data); err != nil {
		return fmt.Errorf("tell the replicators of a rehearsal: %w", err)
	}
	return nil
}

// Rehearsals calls f with what TellRehearsal publishes, until ctx ends.
func (q *Queue) Rehearsals(ctx context.Context, pipeline string, f func(data []byte)) error {
	if err := q.conn.Listen(ctx, rehearsedSubject(pipeline), f); err != nil {
		return fmt.Errorf("listen for rehearsals: %w", err)
	}
	return nil
}
