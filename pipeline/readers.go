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
	"github.com/tailrace-cdc/replicator/source"
)

// watermarks remember how far empty reads of open shards reach. Only the writer's loop uses them, and only
// after everything that was read before is in the log.
type watermarks struct{ through map[string]int64 }

func newWatermarks() *watermarks { return &watermarks{through: map[string]int64{}} }

func (w *watermarks) note(p *change.Page) {
	head := checkpoint.PageHead{Date: p.Date}
	w.through[p.Feed.Shard] = max(w.through[p.Feed.Shard], head.Through())
}

// low returns the time up to which every open shard has been read, 0 while one has not been read at all.
func (w *watermarks) low(s *checkpoint.State) int64 {
	low, any := int64(0), false
	for _, sh := range s.Shards {
		if sh.Phase != checkpoint.Open {
			continue
		}
		if t := max(w.through[sh.ID], sh.Through); !any || t < low {
			low, any = t, true
		}
	}
	return low
}

// readAll reads every readable shard until ctx ends, nil then.
func (in *ingest) readAll(ctx context.Context) error {
	defer close(in.ended)
	pool := in.t.p.src.NewPool()
	events := make(chan source.Event)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(events)
		_ = pool.Run(ctx, events) // ends with ctx, whose cause is known here
		return nil
	})
	r := &reading{ingest: in, pool: pool, given: map[string]bool{}, held: map[string][]*source.Page{}, granted: make(chan string), g: g}
	g.Go(func() error { return r.run(ctx, events) })
	if err := g.Wait(); err != nil && ctx.Err() == nil || err != nil && !errors.Is(err, context.Canceled) {
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
	// held are pages of feeds that ran out of their lead; granted names a feed that may go on.
	held    map[string][]*source.Page
	granted chan string
	raising atomic.Bool
}

func (r *reading) run(ctx context.Context, events <-chan source.Event) error {
	defer func() {
		for _, pages := range r.held {
			for _, p := range pages {
				p.Release()
			}
		}
		for ev := range events { // the pool waits for us while it ends
			if ev.Page != nil {
				ev.Page.Release()
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case tasks := <-r.open:
			for _, t := range tasks {
				r.give(t)
			}
		case shard := <-r.granted:
			if err := r.release(ctx, shard); err != nil {
				return err
			}
		case ev, ok := <-events:
			if !ok {
				return nil
			}
			if err := r.event(ctx, ev); err != nil {
				return err
			}
		}
	}
}

func (r *reading) give(t shardTask) {
	if r.given[t.feed.Shard] {
		return
	}
	r.given[t.feed.Shard] = true
	r.pool.Add(r.t.p.src.NewReader(source.Start{
		Feed: t.feed, Table: r.t.Source, Schema: r.t.Info.Schema, Position: t.pos, Clock: t.clock, Closed: t.closed, Since: t.since,
	}))
}

func (r *reading) event(ctx context.Context, ev source.Event) error {
	if ev.Err != nil {
		return r.ended(ctx, ev)
	}
	shard := ev.Page.Feed.Shard
	if held, ok := r.held[shard]; ok {
		r.held[shard] = append(held, ev.Page) // behind the one that waits
		return nil
	}
	if need := ahead(ev.Page); need > r.t.leadOf() {
		r.hold(ctx, ev.Page, need)
		return nil
	} else if 2*need > r.t.leadOf() {
		r.raise(ctx, need)
	}
	return r.send(ctx, ev.Page)
}

func (r *reading) send(ctx context.Context, p *source.Page) error {
	feed, done := p.Feed, p.Done
	select {
	case <-ctx.Done():
		p.Release()
		return nil
	case r.pages <- p:
	}
	if done {
		r.g.Go(func() error { return r.lister.children(ctx, feed) })
	}
	return nil
}

// hold keeps a feed's pages until its lead is reserved. The feed's own budget bounds them; other feeds go on.
func (r *reading) hold(ctx context.Context, p *source.Page, need time.Duration) {
	shard := p.Feed.Shard
	r.held[shard] = []*source.Page{p}
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
	pages := r.held[shard]
	delete(r.held, shard)
	for i, p := range pages {
		if need := ahead(p); need > r.t.leadOf() {
			rest := pages[i+1:]
			r.hold(ctx, p, need)
			r.held[shard] = append(r.held[shard], rest...)
			return nil
		}
		if err := r.send(ctx, p); err != nil {
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

// ended writes a gap down. Anything else ends the life and is tried again: no permission, no table.
func (r *reading) ended(ctx context.Context, ev source.Event) error {
	gap := (*source.GapError)(nil)
	if !errors.As(ev.Err, &gap) {
		if ctx.Err() != nil {
			return nil
		}
		return ev.Err
	}
	// Rule 8: what is lost is said, with its range, and never jumped over.
	r.t.log.Error("gap: records were lost before they were read", zap.String("shard", gap.Feed.Shard),
		zap.Int64("from_ms", gap.From), zap.Int64("to_ms", gap.To), zap.Error(gap.Err))
	g := &checkpoint.Gap{
		Feed: gap.Feed, From: gap.Position, Since: gap.From, Until: gap.To, Reason: gap.Err.Error(),
		Found: r.t.now(), Ends: gap.Whole,
	}
	r.g.Go(func() error {
		if err := r.find(ctx, g); err != nil {
			return err
		}
		if g.Ends {
			return r.lister.children(ctx, gap.Feed)
		}
		return nil
	})
	return nil
}
