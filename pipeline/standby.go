package pipeline

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
)

// awaitClaim claims the log, and watches meanwhile whether another process carries the table.
func awaitClaim(ctx context.Context, v *tableView, l *queue.Log, o queue.ClaimOptions) (*queue.Writer, error) {
	watching, cancel := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { v.watchRival(watching, l); return nil })
	defer func() {
		cancel()
		_ = g.Wait() // it returns nothing but nil
		v.rival.Store(nil)
	}()
	return l.Claim(ctx, o)
}

// rivalLooks is after how many looks at a log that grows its owner is asked for, beside after a silence: 100 logs are
// looked at all the time.
const rivalLooks = 6

// watchRival checks at every beat whether the log grows.
func (v *tableView) watchRival(ctx context.Context, l *queue.Log) {
	var last uint64
	for failure.Pause(ctx, v.o.Periods.Beat) == nil {
		info, err := l.Info(ctx)
		if err != nil {
			continue // the failure of the service is reported where the call is made
		}
		known := v.rival.Load()
		switch {
		case last == 0 || info.Last == last:
		case known == nil:
			r := &rival{moved: time.Now()}
			if s, err := l.Fold(ctx); err == nil {
				r.owner, r.epoch = s.Owner, s.Epoch
			}
			v.beginStandBy(r)
		default:
			r := &rival{owner: known.owner, epoch: known.epoch, moved: time.Now(), looks: known.looks + 1}
			if r.looks%rivalLooks == 0 || r.moved.Sub(known.moved) > 2*v.o.Periods.Beat { // a third process may have taken over
				if e := l.NewestClaim(ctx); e != nil && e.Kind == checkpoint.KindClaim {
					r.owner, r.epoch = e.Body.(*checkpoint.Claim).Owner, e.Epoch
				}
			}
			v.rival.Store(r)
		}
		last = info.Last
	}
}

// beginStandBy notes that another process carries the table. What this one saw, or halted for, is out of date.
func (v *tableView) beginStandBy(r *rival) {
	v.seen.Store(nil)
	v.halted.Store(nil)
	v.rival.Store(r)
}
