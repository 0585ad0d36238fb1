package ingest

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/source"
)

// reservation keeps versions below what is reserved in Bigtable. A burst can run a shard's clock
// ahead of the time. How far it may run is reserved in the pipeline's row, so that a later life has
// a floor above every version ever given out (Rule 5). The reservation is raised before half of it
// is used, so that Bigtable is called only in a burst; while Bigtable is away, only the shards that
// would exceed the reservation wait. The goroutine of the readers owns the map.
type reservation struct {
	o       *Options
	g       *errgroup.Group
	held    map[string][]arrival // by shard: what waits for a reservation, in order
	granted chan string          // a shard that may go on
	raising atomic.Bool
}

// reserveRetry is how soon Bigtable is asked again for a reservation that a shard waits for.
const reserveRetry = 2 * time.Second

func newReservation(o *Options, g *errgroup.Group) *reservation {
	return &reservation{o: o, g: g, held: map[string][]arrival{}, granted: make(chan string)}
}

// aheadOfTime returns how far the page's last version is ahead of the service's clock at the read
// of the page. Measured against the creation of its record, which may be a day old, it would grow
// with each new life.
func aheadOfTime(p *source.Page) time.Duration {
	n := len(p.Records)
	if n == 0 {
		return 0
	}
	return time.Duration(int64(p.Clock)-int64(p.Date)) * time.Millisecond
}

// hold reports whether an arrival has to wait, and keeps it then: because its versions exceed the
// reservation, or because earlier arrivals of its shard wait. The shard's own memory budget bounds
// what is kept; other shards go on.
func (r *reservation) hold(ctx context.Context, shard string, a arrival) bool {
	if held, ok := r.held[shard]; ok {
		r.held[shard] = append(held, a)
		return true
	}
	if a.page == nil {
		return false
	}
	need := aheadOfTime(a.page)
	if need > r.o.Row.Reserved() {
		r.await(ctx, need, []arrival{a})
		return true
	}
	if need+r.o.Periods.Lead/2 > r.o.Row.Reserved() {
		r.raise(ctx, need)
	}
	return false
}

// await keeps arrivals of a shard until need is reserved for the first of them, a page.
func (r *reservation) await(ctx context.Context, need time.Duration, all []arrival) {
	shard := all[0].page.Feed.Shard
	r.held[shard] = all
	r.o.Logger.Warn("a burst ran ahead of its reserved versions: the shard waits for Bigtable",
		zap.String("shard", shard), zap.Duration("ahead", need))
	r.g.Go(func() error {
		for {
			err := r.o.Row.Reserve(ctx, need)
			if err == nil {
				break
			}
			switch outcome.OfRow(ctx, err).Action {
			case outcome.Drained:
				return nil
			case outcome.Again:
				return err
			}
			r.o.Logger.Warn("reserve versions: will be retried", zap.Error(err))
			if failure.Pause(ctx, reserveRetry) != nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
		case r.granted <- shard:
		}
		return nil
	})
}

// raise reserves more before it is needed. A failure has no consequences yet.
func (r *reservation) raise(ctx context.Context, need time.Duration) {
	if r.raising.Swap(true) {
		return
	}
	r.g.Go(func() error {
		defer r.raising.Store(false)
		if err := r.o.Row.Reserve(ctx, need); err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("reserve versions ahead of need", zap.Error(err))
		}
		return nil
	})
}

// resume returns the held arrivals of a shard that may go on. The rest waits again if one of them
// exceeds the new reservation, too.
func (r *reservation) resume(ctx context.Context, shard string) []arrival {
	all := r.held[shard]
	delete(r.held, shard)
	for i, a := range all {
		if a.page == nil {
			continue
		}
		if need := aheadOfTime(a.page); need > r.o.Row.Reserved() {
			r.await(ctx, need, all[i:])
			return all[:i]
		}
	}
	return all
}

// releaseAll gives back the memory of everything that still waits.
func (r *reservation) releaseAll() {
	for _, all := range r.held {
		for _, a := range all {
			a.release()
		}
	}
}
