package pipeline

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
)

// awaitClaim claims the log, and watches meanwhile whether another process carries the table.
func (t *table) awaitClaim(ctx context.Context, l *queue.Log, o queue.ClaimOptions) (*queue.Writer, error) {
	watching, cancel := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { t.watchRival(watching, l); return nil })
	defer func() {
		cancel()
		_ = g.Wait() // it returns nothing but nil
		t.view.rival.Store(nil)
	}()
	return l.Claim(ctx, o)
}

// watchRival checks at every beat whether the log grows.
func (t *table) watchRival(ctx context.Context, l *queue.Log) {
	var last uint64
	for failure.Pause(ctx, t.o.Periods.Beat) == nil {
		info, err := l.Info(ctx)
		if err != nil {
			continue // the failure of the service is reported where the call is made
		}
		known := t.view.rival.Load()
		switch {
		case last == 0 || info.Last == last:
		case known == nil:
			r := &rival{moved: time.Now()}
			if s, err := l.Fold(ctx); err == nil {
				r.owner, r.epoch = s.Owner, s.Epoch
			}
			t.view.seen.Store(nil) // what this process knew, it knew as the owner
			t.view.rival.Store(r)
		default:
			t.view.rival.Store(&rival{owner: known.owner, epoch: known.epoch, moved: time.Now()})
		}
		last = info.Last
	}
}
