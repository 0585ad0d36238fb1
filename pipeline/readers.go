package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/source"
)

// watermarks remember how far empty reads of open shards reach. Only the writer's loop uses them, and only
// after everything that was read before is in the log.
type watermarks struct {
	of  map[string]*watermark
	all []*watermark
}

type watermark struct {
	sh      *checkpoint.Shard
	through int64
}

func newWatermarks() *watermarks { return &watermarks{of: map[string]*watermark{}} }

// watch begins with a shard when it is opened.
func (w *watermarks) watch(sh *checkpoint.Shard) {
	if m := w.of[sh.ID]; !sh.Phase.Reading() || m != nil && m.sh == sh {
		return
	}
	m := &watermark{sh: sh}
	w.of[sh.ID] = m
	w.all = append(w.all, m)
}

func (w *watermarks) note(p *change.Page) {
	if m := w.of[p.Feed.Shard]; m != nil {
		head := checkpoint.PageHead{Date: p.Date}
		m.through = max(m.through, head.Watermark())
	}
}

// low returns the time up to which every open shard has been read, 0 while one has not been read at all. It forgets
// the shards that are read to their end.
func (w *watermarks) low() int64 {
	low, any := int64(0), false
	kept := w.all[:0]
	for _, m := range w.all {
		if !m.sh.Phase.Reading() {
			if w.of[m.sh.ID] == m {
				delete(w.of, m.sh.ID)
			}
			continue
		}
		kept = append(kept, m)
		if t := max(m.through, m.sh.Watermark); !any || t < low {
			low, any = t, true
		}
	}
	clear(w.all[len(kept):])
	w.all = kept
	return low
}

// readAll reads every readable shard until ctx ends, nil then: only that is a drain.
func (in *ingest) readAll(ctx context.Context) (err error) {
	defer func() {
		if err == nil {
			close(in.ended)
		}
	}()
	pool := in.t.p.src.NewPool()
	events := make(chan source.Event)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		_ = pool.Run(ctx, events) // ends with ctx, whose cause is known here; what nobody takes any more it releases
		return nil
	})
	r := &reading{ingest: in, pool: pool, given: map[string]bool{}, held: map[string][]arrival{}, granted: make(chan string), g: g}
	g.Go(func() error { return r.run(ctx, events) })
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// reading hands shards to the pool and the pool's pages to the writer.
type reading struct {
	*ingest
	pool *source.Pool
	g    *errgroup.Group
	// given are the shards that the pool was given in this life. One that ended is not given again, although
	// the state may show it readable until its last page is stored: whatever comes of it, the next life reads
	// it from what is stored.
	given map[string]bool
	// held is what came of feeds that ran out of their lead; granted names a feed that may go on.
	held    map[string][]arrival
	granted chan string
	raising atomic.Bool
}

func (r *reading) run(ctx context.Context, events <-chan source.Event) error {
	defer func() {
		for _, all := range r.held {
			for _, a := range all {
				a.release()
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case tasks := <-r.open:
			r.give(tasks)
		case shard := <-r.granted:
			if err := r.release(ctx, shard); err != nil {
				return err
			}
		case ev := <-events:
			if err := r.event(ctx, ev); err != nil {
				return err
			}
		}
	}
}

func (r *reading) give(tasks []shardTask) {
	for _, t := range tasks {
		shard := t.feed.Shard
		if t.over {
			delete(r.given, shard)
			continue
		}
		if r.given[shard] {
			continue
		}
		r.given[shard] = true
		r.pool.Add(r.t.p.src.NewReader(source.Start{
			Feed: t.feed, Table: r.t.Source, Schema: r.t.Info.Schema, Position: t.pos, Clock: t.clock, Closed: t.closed, Since: t.since,
		}))
	}
}

func (r *reading) event(ctx context.Context, ev source.Event) error {
	a := arrival{page: ev.Page}
	if ev.Err != nil {
		gap := (*source.GapError)(nil)
		if !errors.As(ev.Err, &gap) {
			return r.failed(ctx, ev.Err)
		}
		a.gap = finding{body: r.gap(gap)}
	}
	shard := ev.Reader.Feed().Shard
	if held, ok := r.held[shard]; ok {
		r.held[shard] = append(held, a) // behind the one that waits
		return nil
	}
	if a.page == nil {
		return r.send(ctx, a)
	}
	if need := ahead(a.page); need > r.t.leadOf() {
		r.hold(ctx, a, need)
		return nil
	} else if 2*need > r.t.leadOf() {
		r.raise(ctx, need)
	}
	return r.send(ctx, a)
}

// send hands on what came of a shard, and looks for the shard's children after its end.
func (r *reading) send(ctx context.Context, a arrival) error {
	if a.page == nil {
		return r.sendGap(ctx, a.gap.body.(*checkpoint.Gap))
	}
	feed, done := a.page.Feed, a.page.Done
	select {
	case <-ctx.Done():
		a.release()
		return nil
	case r.arrivals <- a:
	}
	if done {
		r.g.Go(func() error { return r.lister.children(ctx, feed) })
	}
	return nil
}

// hold keeps what came of a feed until its lead is reserved. The feed's own budget bounds it; other feeds go on.
func (r *reading) hold(ctx context.Context, a arrival, need time.Duration) {
	shard := a.page.Feed.Shard
	r.held[shard] = []arrival{a}
	r.t.log.Warn("a burst ran ahead of its reserved versions: the shard waits for Bigtable",
		zap.String("shard", shard), zap.Duration("ahead", need))
	r.g.Go(func() error {
		for {
			err := r.t.reserve(ctx, need)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return nil
			}
			if outcome.OfRow(ctx, err).Action == outcome.Again {
				return err
			}
			r.t.log.Warn("reserve versions: will be retried", zap.Error(err))
			if !sleep(ctx, reserveRetry) {
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

const reserveRetry = 2 * time.Second

// raise reserves more before it is needed. A failure costs nothing yet.
func (r *reading) raise(ctx context.Context, need time.Duration) {
	if r.raising.Swap(true) {
		return
	}
	r.g.Go(func() error {
		defer r.raising.Store(false)
		if err := r.t.reserve(ctx, need); err != nil && ctx.Err() == nil {
			r.t.log.Warn("reserve versions ahead of need", zap.Error(err))
		}
		return nil
	})
}

// release sends on what was held of a feed.
func (r *reading) release(ctx context.Context, shard string) error {
	all := r.held[shard]
	delete(r.held, shard)
	for i, a := range all {
		if a.page != nil {
			if need := ahead(a.page); need > r.t.leadOf() {
				r.hold(ctx, a, need)
				r.held[shard] = append(r.held[shard], all[i+1:]...)
				return nil
			}
		}
		if err := r.send(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// failed ends the life with what no retry of the reader mends: no permission, no table. It is tried again later.
func (r *reading) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// gap describes what was lost.
//
// Rule 8: what is lost is said, with its range, and never jumped over.
func (r *reading) gap(e *source.GapError) *checkpoint.Gap {
	r.t.log.Error("gap: records were lost before they were read", zap.String("shard", e.Feed.Shard),
		zap.Int64("from_ms", e.From), zap.Int64("to_ms", e.To), zap.Error(e.Err))
	return &checkpoint.Gap{
		Feed: e.Feed, From: e.Position, Since: e.From, Until: e.To, Reason: e.Err.Error(), Found: r.t.now(), Ends: e.Whole,
	}
}

// sendGap hands on a gap behind the pages of its shard. The gap is the last that comes of the shard in this life.
func (r *reading) sendGap(ctx context.Context, g *checkpoint.Gap) error {
	hand := func(f finding) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r.arrivals <- arrival{gap: f}:
			return nil
		}
	}
	r.g.Go(func() error {
		if err := r.stored(ctx, g, hand); err != nil {
			return err
		}
		if g.Ends {
			return r.lister.children(ctx, g.Feed)
		}
		return nil
	})
	return nil
}
