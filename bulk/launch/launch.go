package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// The exit codes.
const (
	All    = 0 // every file has a mark
	NotAll = 1 // some have none: launch again
	Usage  = 2
	Closed = 3 // there is no open order, or none that this program can copy
)

// Launch is one launch of a job.
type Launch struct {
	Place    worker.Place // its Order and Profile are set by Await
	Out      io.Writer
	Terminal bool // Out is one, and takes a bar

	Poll time.Duration // between readings of order and marks
	Line time.Duration // between lines where Out is no terminal
}

// New returns a launch with the usual pauses.
func New(p worker.Place, out io.Writer, terminal bool) *Launch {
	return &Launch{Place: p, Out: out, Terminal: terminal, Poll: 5 * time.Second, Line: time.Minute}
}

func (l *Launch) print(format string, args ...any) { _, _ = fmt.Fprintf(l.Out, format+"\n", args...) }

// ClosedError means that there is nothing to copy.
type ClosedError struct {
	Done bool // because every file is copied
	Why  string
}

func (e *ClosedError) Error() string { return e.Why }

// Await waits until the daemon has opened an order of the table. An order that is closed ends the
// wait: *ClosedError.
func (l *Launch) Await(ctx context.Context) (*delegation.Order, error) {
	c, err := l.Place.Client(ctx, 0, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	printed := time.Time{}
	for {
		o, why, err := l.look(ctx, c)
		if o != nil || err != nil {
			return o, err
		}
		if now := time.Now(); now.Sub(printed) >= l.Line {
			l.print("waiting for an order to copy %s of pipeline %s: %s", l.Place.Table, l.Place.Pipeline, why)
			printed = now
		}
		if err := failure.Pause(ctx, l.Poll); err != nil {
			return nil, err
		}
	}
}

// Look is Await without the wait. Without an order it returns a *ClosedError.
func (l *Launch) Look(ctx context.Context) (*delegation.Order, error) {
	c, err := l.Place.Client(ctx, 0, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	o, why, err := l.look(ctx, c)
	if o == nil && err == nil {
		err = &ClosedError{Why: "there is no order: " + why}
	}
	return o, err
}

// look reads the order. Without one it returns why there is none yet.
func (l *Launch) look(ctx context.Context, c *bigtable.Client) (o *delegation.Order, why string, err error) {
	seen, err := c.LoadOrder(ctx, l.Place.Pipeline, l.Place.Table)
	var newer *delegation.NewerFormatError
	switch {
	case errors.As(err, &newer):
		return nil, "", &ClosedError{Why: err.Error()}
	case bigtable.Classify(err) == failure.Transient:
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", bigtable.Explain(err)
	case seen.Order == nil, seen.Order.Life != seen.Life:
		return nil, "the daemon opens it where backfill has `by: workers`, once everything up to the export is applied", nil
	case !seen.Order.Open():
		return nil, "", closedBy(seen.Order)
	case seen.Held:
		return nil, "", &ClosedError{Why: "the table is fenced, or is being recovered: nothing may be copied"}
	}
	l.Place.Order, l.Place.Profile = seen.Order.ID, seen.Order.Profile
	return seen.Order, "", nil
}

// closedBy returns why a closed order permits nothing.
func closedBy(o *delegation.Order) error {
	why := map[delegation.CloseReason]string{
		delegation.CloseDone:     "every file is copied",
		delegation.CloseTakeback: "the daemon copies the rest itself (copy takeback)",
		delegation.CloseCancel:   "the copy was cancelled",
		delegation.ClosePause:    "the copy is paused: `replicator status` names the reason",
		delegation.CloseUnfit:    "workers cannot copy with the table's mapping",
	}[o.Reason]
	if why == "" {
		why = string(o.Reason)
	}
	return &ClosedError{Done: o.Reason == delegation.CloseDone, Why: "the order is closed: " + why}
}

// Job runs a job of an engine until the engine takes it for ended.
type Job func(ctx context.Context, p worker.Place, files int) error

// Run runs a job, shows its progress, and returns the exit code: what the marks show afterwards.
// The error of the engine is printed, and decides nothing.
func (l *Launch) Run(ctx context.Context, o *delegation.Order, job Job) (int, error) {
	c, err := l.Place.Client(ctx, 0, nil)
	if err != nil {
		return Closed, err
	}
	defer func() { _ = c.Close() }()
	t := newTally(o)
	if err := t.read(ctx, c); err != nil {
		return NotAll, bigtable.Explain(err)
	}
	l.print("order %s: %d of %d files are copied already", o.ID, t.files, t.wanted)
	if t.complete() {
		return All, nil
	}
	showing, ended := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return l.show(showing, c, t) })
	began := time.Now()
	failed := job(ctx, l.Place, o.Export.Files)
	ended()
	if err := g.Wait(); err != nil {
		l.print("%s", err)
	}
	if failed != nil {
		l.print("the engine reports: %s", failed)
	}
	return l.result(context.WithoutCancel(ctx), c, t, time.Since(began))
}

// result reads the order and the marks once more. The order comes first: the daemon removes the
// marks once it has closed an order that is done.
func (l *Launch) result(ctx context.Context, c *bigtable.Client, t *tally, took time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var closed *ClosedError
	switch o, _, err := l.look(ctx, c); {
	case errors.As(err, &closed) && closed.Done:
		l.print("every file is copied")
		return All, nil
	case errors.As(err, &closed), o != nil && o.ID != t.order.ID:
		return Closed, cmp.Or(err, error(&ClosedError{Why: "the table has another order"}))
	}
	if err := t.read(ctx, c); err != nil {
		return NotAll, bigtable.Explain(err)
	}
	l.print("%s in %s", t.summary(), took.Round(time.Second))
	if !t.complete() {
		return NotAll, fmt.Errorf("%d of %d files have no mark: launch again, or `replicator copy takeback --table %s`",
			t.wanted-t.files, t.wanted, t.order.Table)
	}
	l.print("every file is copied: the daemon takes the marks over, and closes the order")
	return All, nil
}
