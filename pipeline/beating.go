package pipeline

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// currentLog returns the table's log, nil before it is open.
func (t *table) currentLog() *queue.Log { return t.stream.Load() }

// observe publishes what the log holds, for status and metrics. The goroutine that owns the log's
// writer calls it.
func (t *table) observe(s *checkpoint.State) {
	t.view.observe(s, t.pressure, t.letters)
	if a := t.view.latest().parts.archiver; a != nil {
		a.Observe(s)
	}
}

// beat appends a beat, which shows that the owner is alive. It is skipped while the log is too
// full.
func (t *table) beat(ctx context.Context, w *queue.Writer) error {
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: t.now()}, nil); err != nil && !errors.Is(err, queue.ErrFull) {
		return err
	}
	return nil
}

// beatWhile runs f and appends a beat every Periods.Beat until f returns. The write loop, which
// beats later, does not run yet, and what f waits for (a listing of many shards, Bigtable, a walk
// over all dead letters) may take longer than a claim lives: another replica would take the log
// over, and do the same.
//
// The caller owns w meanwhile: f runs in a goroutine of its own and must not use w or its state.
func (t *table) beatWhile(ctx context.Context, w *queue.Writer, f func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	ended := make(chan struct{})
	g.Go(func() error {
		defer close(ended)
		return f(ctx)
	})
	g.Go(func() error {
		tick := time.NewTicker(t.o.Periods.Beat)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return nil
			case <-tick.C:
			}
			if err := t.beat(ctx, w); err != nil {
				return err // f ends with ctx
			}
			t.observe(w.State())
		}
	})
	return g.Wait()
}
