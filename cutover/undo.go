package cutover

import (
	"cmp"
	"context"
	"errors"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Undone is a table that lost its fence to an undo.
type Undone struct {
	Table string `json:"table"`
	ID    string `json:"id"`
	// Unread is why the log could not be read. The fence in it, if it holds one, is still there:
	// the table stands at it until the log can be read, and then the same command takes it away.
	Unread string `json:"unread,omitempty"`
}

// Undo takes the fences of tables away: in the log first, in the row last, so that an interruption
// leaves the table refused and not half at work. A log that is lost, or that cannot be read, is
// left out: else nothing could ever take the fence away, because what lets a damaged log go on,
// `resume` and `recover`, needs the row. q is nil where there is no queue at all.
func Undo(
	ctx context.Context, q *queue.Queue, sink *bigtable.Client, pipeline string, tables []string,
) (all []Undone, err error) {
	for _, table := range tables {
		u := Undone{Table: table}
		fence, err := fenceOfRow(ctx, sink, pipeline, table)
		if err != nil {
			return all, err
		}
		if u.ID, err = undoLog(ctx, q, table); unreadable(err) {
			u.Unread = err.Error()
		} else if err != nil {
			return all, err
		}
		if err := unfenceRow(ctx, sink, pipeline, table, fence); err != nil {
			return all, err
		}
		u.ID = cmp.Or(fence, u.ID)
		if u.ID != "" {
			all = append(all, u)
		}
	}
	return all, nil
}

// Fenced returns which tables have a fence, in the log or in the row, that Undo would take away. It
// leaves out a log that is lost or cannot be read, as Undo does.
func Fenced(
	ctx context.Context, q *queue.Queue, sink *bigtable.Client, pipeline string, tables []string,
) (fenced []string, err error) {
	for _, table := range tables {
		id, err := fenceOfRow(ctx, sink, pipeline, table)
		if err != nil {
			return nil, err
		}
		l, err := fencedLog(ctx, q, table)
		if err != nil && !unreadable(err) {
			return nil, err
		}
		if id != "" || l != nil {
			fenced = append(fenced, table)
		}
	}
	return fenced, nil
}

// fenceOfRow returns the id of the fence in a table's row; "" where there is none.
func fenceOfRow(ctx context.Context, sink *bigtable.Client, pipeline, table string) (id string, err error) {
	err = editRow(ctx, sink, pipeline, table, func(s *bigtable.State) bool {
		if s.Fenced != nil {
			id = s.Fenced.ID
		}
		return false
	})
	return id, err
}

// unfenceRow takes a fence away from a table's row. It leaves one that another cutover has raised
// since the undo began: with its certificate the application may have moved, and without that fence
// a lost log would be recovered.
func unfenceRow(ctx context.Context, sink *bigtable.Client, pipeline, table, id string) error {
	return editRow(ctx, sink, pipeline, table, func(s *bigtable.State) bool {
		if s.Fenced == nil || s.Fenced.ID != id {
			return false
		}
		s.Fenced = nil
		return true
	})
}

// unreadable reports whether a log cannot be read, now or later, as it is.
func unreadable(err error) bool {
	return errors.Is(err, queue.ErrDamaged) || errors.Is(err, queue.ErrEmptied) ||
		errors.As(err, new(*checkpoint.CorruptError))
}

// undoLog takes the fence of a log away, and returns its id; "" where there is none.
func undoLog(ctx context.Context, q *queue.Queue, table string) (id string, err error) {
	l, err := fencedLog(ctx, q, table)
	if l == nil || err != nil {
		return "", err
	}
	id = l.State.Fence.ID
	_, err = l.Append(ctx, "undo fence", checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: id, Undo: true}})
	return id, err
}

// fencedLog returns the log of a table with its state; nil if it holds no fence or there is none.
func fencedLog(ctx context.Context, q *queue.Queue, table string) (*control.Log, error) {
	if q == nil {
		return nil, nil
	}
	if _, err := q.Log(ctx, table); errors.Is(err, queue.ErrNoLog) {
		return nil, nil
	}
	l, err := control.Open(ctx, q, table)
	if newer := (*checkpoint.NewerFormatError)(nil); errors.As(err, &newer) {
		return nil,
			failure.With(failure.Unready,
				"nothing was changed; `replicator cutover --undo` of the newer build takes the fence away", err)
	}
	if err != nil || l.State.Fence == nil {
		return nil, err
	}
	return l, nil
}
