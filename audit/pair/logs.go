package pair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/verify"
)

// Logs folds the logs of all tables, in their order. Where no daemon runs it opens the embedded
// store, which keeps one from starting.
func (p *Pair) Logs(ctx context.Context) ([]*control.Log, error) {
	q, err := p.Queue(ctx)
	if err != nil {
		return nil, err
	}
	return p.fold(ctx, q)
}

// Queue returns the logs of the running daemon. The connection is kept until a look at it fails.
func (p *Pair) Queue(ctx context.Context) (*queue.Queue, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients.Queue(ctx)
}

// Running folds the logs of all tables in the queue of the daemon that runs now. While the daemon
// is started again, or the queue's servers elect a leader, it waits: for a minute at most.
func (p *Pair) Running(ctx context.Context) ([]*control.Log, error) {
	for began := time.Now(); ; {
		logs, err := p.running(ctx)
		switch {
		case err == nil:
			return logs, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case queue.Classify(err) != failure.Transient || time.Since(began) > protocol.Restart:
			return nil, err
		}
		if err := failure.Pause(ctx, control.Period); err != nil {
			return nil, err
		}
	}
}

// running folds the logs of all tables in the queue of the daemon that runs now. After an error the
// next call connects again.
func (p *Pair) running(ctx context.Context) ([]*control.Log, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A wait for a daemon that stays away ends.
	wait, cancel := context.WithTimeout(ctx, protocol.Restart)
	defer cancel()
	q, err := p.clients.RunningQueue(wait)
	if err != nil {
		return nil, err
	}
	logs, err := p.fold(ctx, q)
	if err != nil {
		_ = p.clients.CloseQueue() // the daemon went away, or a reader overflowed
	}
	return logs, err
}

// Logged calls f with the changes of items of a table that its log has stored since a time of the
// service's clock, and with the index of the item's key; verify.ErrTrimmed where the log does not
// reach back so far. When the owner of the log goes away meanwhile, Logged begins again once there
// is another one, so f may see a change twice.
func (p *Pair) Logged(
	ctx context.Context, table string, since change.Millis, keys [][]byte, f func(key int, c *change.Change) error,
) error {
	for began := time.Now(); ; {
		err := p.walk(ctx, table, since, keys, f)
		switch {
		case errors.Is(err, queue.ErrTrimmed):
			return fmt.Errorf("%w: %w", verify.ErrTrimmed, err)
		case err == nil || ctx.Err() != nil || queue.Classify(err) != failure.Transient,
			time.Since(began) > protocol.Restart:
			return err
		}
		if err := failure.Pause(ctx, control.Period); err != nil {
			return err
		}
	}
}

// Entries calls f with the entries of a table's log as (queue.Walk).Entries does; it sets the log
// of the walk. When the owner of the log goes away meanwhile, it goes on once there is another one,
// so f may see an entry twice.
func (p *Pair) Entries(
	ctx context.Context, table string, w queue.Walk, f func(*queue.WalkedEntry) error,
) (mark checkpoint.Mark, err error) {
	for began := time.Now(); ; {
		logs, err := p.running(ctx)
		if err == nil {
			w.Log = logs[p.Index(table)].Log
			mark, err = w.Entries(ctx, f)
		}
		if err == nil || errors.Is(err, queue.ErrTrimmed) || ctx.Err() != nil ||
			queue.Classify(err) != failure.Transient || time.Since(began) > protocol.Restart {
			return mark, err
		}
		if err := failure.Pause(ctx, control.Period); err != nil {
			return mark, err
		}
	}
}

// walk is Logged without a second try.
func (p *Pair) walk(
	ctx context.Context, table string, since change.Millis, keys [][]byte, f func(key int, c *change.Change) error,
) error {
	logs, err := p.running(ctx)
	if err != nil {
		return err
	}
	i := p.Index(table)
	from, err := queue.EntrySinceCreated(ctx, logs[i].Log, since, p.Now())
	if err != nil {
		return err
	}
	w := queue.Walk{Log: logs[i].Log, From: from}
	_, err = w.ChangesOf(ctx, p.Tables[i].Info.Schema, keys, func(key int, c *queue.WalkedChange) error {
		return f(key, c.Change)
	})
	return err
}

// fold folds the logs of all tables.
func (p *Pair) fold(ctx context.Context, q *queue.Queue) (logs []*control.Log, err error) {
	for _, t := range p.Tables {
		l, err := control.Open(ctx, q, t.Source)
		if err != nil {
			return nil, err
		}
		l.Clock = func(context.Context, string) (change.Millis, bool) { return p.source.Now() }
		logs = append(logs, l)
	}
	return logs, nil
}
