package pipeline

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// beating runs f and appends a beat every Periods.Beat until f returns. The write loop, which beats later, does not
// run yet, and what f waits for (a listing of many shards, Bigtable, a walk over all dead letters) may take longer
// than the claim's time: another replica would take the log over, and do the same.
//
// The caller owns w meanwhile: f runs in a goroutine of its own and must not use w or its state.
func (t *table) beating(ctx context.Context, w *queue.Writer, f func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	ended := make(chan struct{})
	g.Go(func() error {
		defer close(ended)
		return f(ctx)
	})
	g.Go(func() error {
		tick := time.NewTicker(t.p.o.Periods.Beat)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return nil
			case <-tick.C:
			}
			if _, err := w.Append(ctx, &checkpoint.Beat{Date: t.now()}, nil); err != nil && !errors.Is(err, queue.ErrFull) {
				return err // f ends with ctx
			}
			t.observe(w.State())
		}
	})
	return g.Wait()
}
