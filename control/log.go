package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
)

// appendTimeout bounds one control entry: an election of the queue's servers takes a few seconds.
const appendTimeout = time.Minute

// Log is a table's log with its state.
type Log struct {
	Table string
	Log   *queue.Log
	State *checkpoint.State
	// Clock reads the time of DynamoDB's clock; ok is false where that is not possible. Optional,
	// see Append.
	Clock func(ctx context.Context, table string) (now change.Millis, ok bool)
}

// Open folds the log of a table. A table without a log is an error.
func Open(ctx context.Context, q *queue.Queue, table string) (*Log, error) {
	l, err := OpenUnread(ctx, q, table)
	if err != nil {
		return nil, err
	}
	return l, l.Refresh(ctx)
}

// OpenUnread is Open without folding the log: its State is nil until Append. So it opens a log that
// is damaged.
func OpenUnread(ctx context.Context, q *queue.Queue, table string) (*Log, error) {
	log, err := q.Log(ctx, table)
	if errors.Is(err, queue.ErrNoLog) {
		return nil, failure.With(failure.Unready,
			"`replicator run` makes it when it starts", fmt.Errorf("table %s has no log yet", table))
	}
	if err != nil {
		return nil, failure.With(failure.Unready, "see `replicator check`", fmt.Errorf("open log of %s: %w", table, err))
	}
	return &Log{Table: table, Log: log}, nil
}

// OpenAll folds the logs of the tables that have one.
func OpenAll(ctx context.Context, q *queue.Queue, tables []config.Table) (logs []*Log, err error) {
	for _, t := range tables {
		if _, err := q.Log(ctx, t.Source); errors.Is(err, queue.ErrNoLog) {
			continue
		}
		l, err := Open(ctx, q, t.Source)
		if err != nil {
			return nil, err
		}
		logs = append(logs, l)
	}
	return logs, nil
}

// Refresh folds the log again.
func (l *Log) Refresh(ctx context.Context) (err error) {
	if l.State, err = l.Log.Fold(ctx); err != nil {
		return failure.With(failure.Unready, "see `replicator check`", fmt.Errorf("read log of %s: %w", l.Table, err))
	}
	return nil
}

// Append appends a control entry, and folds the log again. what names the command for errors.
//
// The entry's time is a time of DynamoDB's clock, as all times in a log are. A resync begins only
// when that clock is past the order, so a time of a machine an hour ahead would delay it by an
// hour. Where DynamoDB does not answer, it is the newest time in the log. The time at which the
// queue's server stores the entry would not do: it comes from a third clock.
func (l *Log) Append(ctx context.Context, what string, control checkpoint.Control) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	control.By, control.At = Whoami(), l.now(ctx)
	if seq, err = l.Log.AppendControl(ctx, &control); err != nil {
		err = fmt.Errorf("%s of table %s: %w", what, l.Table, err)
		if old := (*checkpoint.FormatError)(nil); errors.As(err, &old) {
			return 0, failure.With(failure.Unready,
				"nothing was changed; once no older replicator runs: `replicator upgrade --finalize`", err)
		}
		if errors.Is(err, queue.ErrDamaged) {
			return 0, failure.With(failure.Unready, "nothing was changed; see \"Damaged log\" in docs/operations.md", err)
		}
		if fence := (*checkpoint.FenceError)(nil); errors.As(err, &fence) {
			return 0, failure.With(failure.Unready, FenceHint, fmt.Errorf("%s of table %s: %w", what, l.Table, fence))
		}
		if errors.As(err, new(*checkpoint.DelegatedError)) {
			return 0, failure.With(failure.Unready, "nothing was changed; `replicator copy takeback --table "+l.Table+
				"`, then wait until `replicator status` shows no workers", err)
		}
		return 0, err
	}
	_ = l.Log.RequestBeat() // so that the owner reads the entry now, not at its next beat
	return seq, l.Refresh(ctx)
}

// now returns the time of DynamoDB's clock; 0 where the log was not folded either.
func (l *Log) now(ctx context.Context) change.Millis {
	if l.Clock != nil {
		if now, ok := l.Clock(ctx, l.Table); ok {
			return now
		}
	}
	if l.State == nil {
		return 0
	}
	return l.State.Date
}

// FenceHint is what to do about a table that is fenced.
const FenceHint = "nothing was changed; `replicator cutover --undo` takes a fence away, and says first what that means"

// Whoami returns user and host of the command, for the log and for requests.
func Whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
