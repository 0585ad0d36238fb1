package pipeline

import (
	"context"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// checkCopy refuses a claimed log that is an older copy. If that cannot be found out in a moment,
// the look beside the work finds it.
func (t *table) checkCopy(ctx context.Context, w *queue.Writer) error {
	if !t.row.Agrees() {
		return nil // Confirm does it
	}
	return t.beatWhile(ctx, w, func(ctx context.Context) error {
		err := t.row.CheckCopy(ctx, t.currentLog())
		if outcome.OfRow(ctx, err).Action == outcome.Retry {
			t.log.Warn("whether the log is an older copy is not known yet, trying again", zap.Error(err))
			return nil
		}
		return err
	})
}

// watchRow looks at the pipeline's row of the table, and notes there how far its log is, until ctx
// ends.
//
// Rule 15: a premise that another system holds is looked at before the work of a life, and then
// while it lasts.
func (t *table) watchRow(ctx context.Context, w *queue.Writer) error {
	if t.row.Await(ctx) != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	pause, warned := time.Duration(0), time.Time{}
	for failure.Pause(ctx, pause) == nil {
		n := w.Acked()
		failed, err := t.lookAtRow(ctx, n)
		if err != nil && !failed {
			return err
		}
		if failed && time.Since(warned) >= premisesEvery {
			t.log.Warn("look at the pipeline's row: will be retried", zap.Error(err))
			warned = time.Now()
		}
		if pause = min(premisesEvery, t.o.Periods.Retry); n == nil {
			pause = min(pause, t.o.Periods.Beat)
		}
		if failed {
			pause = min(pause, rowAgain)
		}
	}
	return nil
}

// rowAgain is how soon a look at the row that failed is tried again: that Bigtable is away is shown
// until its first answer.
const rowAgain = 5 * time.Second

// lookAtRow looks once. Where failed is true the error may pass by itself.
func (t *table) lookAtRow(ctx context.Context, n *protocol.LogNote) (failed bool, err error) {
	err = t.row.CheckCopy(ctx, t.currentLog())
	if err == nil || bigtable.Classify(err) == failure.Missing {
		err = t.row.Look(ctx, n)
	}
	switch outcome.OfRow(ctx, err).Action {
	case outcome.Again, outcome.Halt:
		return false, err
	case outcome.Retry:
		return true, err
	}
	return false, nil
}

// whileWatched is f with a look at the row beside it.
func (t *table) whileWatched(ctx context.Context, w *queue.Writer, f func(context.Context, *queue.Writer) error) error {
	g, working := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(working)
	g.Go(func() error { return t.watchRow(watching, w) })
	g.Go(func() error {
		defer stop()
		return f(working, w)
	})
	return g.Wait()
}

// lastNoteTime is how long the end of a life may take to note the end of its log.
const lastNoteTime = 2 * time.Second

// noteEnd notes the end of a log that was let go of: an older copy of it is told from then on,
// however young it is.
func (t *table) noteEnd(w *queue.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), lastNoteTime)
	defer cancel()
	if _, err := t.row.Note(ctx, w.Acked()); err != nil {
		t.log.Info("the end of the log is not noted", zap.Error(err))
	}
}
