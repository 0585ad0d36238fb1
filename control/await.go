package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
)

// Period is how often an observer looks while it waits.
const Period = 250 * time.Millisecond

const (
	statusTimeout = 15 * time.Second // for a status whose ctx has no deadline: an election takes a few seconds
	lookTimeout   = 10 * time.Second // for one look while waiting
)

// DaemonOnlyError is returned with a status that comes from the daemon, because the logs cannot be
// read.
type DaemonOnlyError struct{ Err error }

func (e *DaemonOnlyError) Error() string {
	return fmt.Sprintf("the logs cannot be read, so this is the status that the daemon serves: %v", e.Err)
}

// Unwrap returns the error of reading the logs.
func (e *DaemonOnlyError) Unwrap() error { return e.Err }

// Status returns the status now. Transient errors, such as an election of the queue's servers or a
// reader that overflowed, are retried until ctx ends, or for statusTimeout if ctx has no deadline.
// When the logs cannot be read in that time but a daemon answers, Status returns the daemon's
// status and a *DaemonOnlyError.
func (o *Observer) Status(ctx context.Context) (pipeline.Status, error) {
	defer o.closeQueue()
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, statusTimeout)
		defer cancel()
	}
	o.daemon = Daemon(ctx, o.cfg)
	for {
		status, err := o.lookTwice(ctx)
		if err == nil {
			return status, nil
		}
		o.closeQueue()
		if isTransient(err) && failure.Pause(ctx, Period) == nil {
			continue
		}
		if o.daemon != nil {
			return *o.daemon, &DaemonOnlyError{err}
		}
		return status, err
	}
}

// Await looks until everything that was written before a time of the service is in Bigtable, until
// only obstacles stand before it that no waiting overcomes, or until ctx ends; the zero time means
// now. accept names what does not count. Meanwhile the daemon may start, end and start again. The
// status is the last one that was read; its Schema is 0 if there was none.
func (o *Observer) Await(
	ctx context.Context, goal time.Time, accept protocol.Accept,
) (last pipeline.Status, reached Reached, err error) {
	defer o.closeQueue()
	goal, err = o.goal(ctx, goal)
	if err != nil {
		return last, Reached{}, nil // ctx has ended
	}
	w := NewWait(goal, o.tables, accept)
	for {
		status, reached, err := o.lookFor(ctx, w)
		switch {
		case reached.Met || reached.Blocked:
			return o.withDaemon(ctx, status), reached, nil
		case err == nil && status.Schema > 0:
			last = status
		case err != nil && ctx.Err() == nil:
			return last, Reached{}, err
		}
		if failure.Pause(ctx, Period) != nil {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
			defer cancel()
			return o.withDaemon(late, last), Reached{}, nil
		}
	}
}

// withDaemon returns the status with what the daemon adds to what the logs hold: why it has begun
// no log, rates, and services that fail. Without an answer it returns the status as it is.
func (o *Observer) withDaemon(ctx context.Context, s pipeline.Status) pipeline.Status {
	if o.daemon = Daemon(ctx, o.cfg); o.daemon == nil || s.Schema == 0 {
		return s
	}
	if _, err := o.clients.RunningQueue(ctx); err != nil {
		return s
	}
	if with, _, err := o.Look(ctx); err == nil {
		return with
	}
	return s
}

// goal returns a time, or for the zero one the time of the service now, once that is certain.
// An error means that ctx has ended.
func (o *Observer) goal(ctx context.Context, at time.Time) (time.Time, error) {
	if !at.IsZero() {
		return at, nil
	}
	if len(o.tables) > 0 {
		if err := o.clients.AwaitClock(ctx, o.tables[0].Source); err != nil {
			return at, err
		}
	}
	return o.clients.Now().Add(time.Second), nil // the Date of DynamoDB's replies is rounded down to a second
}

// lookFor connects to the daemon's queue if that is necessary, and looks. It does not return
// transient errors.
func (o *Observer) lookFor(ctx context.Context, w *Wait) (status pipeline.Status, reached Reached, err error) {
	if _, err = o.clients.RunningQueue(ctx); err != nil {
		if _, limited := ctx.Deadline(); limited && isTransient(err) {
			err = nil // the servers elect a leader, or cannot be reached: Await retries until the deadline
		}
		return status, reached, err
	}
	once, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	status, all, err := o.Look(once)
	if err == nil {
		reached, err = w.Look(once, all)
	}
	switch {
	case err == nil && (reached.Met || reached.Blocked):
	case err == nil:
		w.RequestProgress(all)
	case isTransient(err) || once.Err() != nil:
		o.closeQueue() // the daemon went away, or a reader overflowed
		err = nil
	}
	return status, reached, err
}

// UntilApplied returns nil when everything that was written before the call is in Bigtable, or when
// ctx ends, and an error with exit code 4 when only obstacles stand before that. It is for a
// daemon: the queue stays open.
func (o *Observer) UntilApplied(ctx context.Context, accept protocol.Accept) error {
	goal, err := o.goal(ctx, time.Time{})
	if err != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	w := NewWait(goal, o.tables, accept)
	for failure.Pause(ctx, Period) == nil {
		_, all, err := o.Look(ctx)
		var reached Reached
		if err == nil {
			reached, err = w.Look(ctx, all)
		}
		switch {
		case err != nil && (ctx.Err() != nil || queue.Classify(err) == failure.Transient):
		case err != nil:
			return fmt.Errorf("look at logs: %w", err)
		case reached.Met || reached.Blocked:
			return reached.Err()
		default:
			w.RequestProgress(all)
		}
	}
	return nil
}

// closeQueue ends the connection; errors of reading have been returned already.
func (o *Observer) closeQueue() { _ = o.clients.CloseQueue() }

// isTransient reports whether the same look may succeed later.
func isTransient(err error) bool {
	return queue.Classify(err) == failure.Transient || errors.Is(err, queue.ErrGap) || errors.Is(err, queue.ErrChain) ||
		errors.Is(err, context.DeadlineExceeded)
}
