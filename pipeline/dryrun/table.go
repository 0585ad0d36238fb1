package dryrun

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source"
)

// table is the dry run of one table. The goroutine of follow owns the graph.
type table struct {
	*Table
	o      *Options
	counts *counts
	found  chan []source.Shard // listed beside the reading

	mu     sync.Mutex // covers shards
	shards Shards
}

func newTable(o *Options, t Table, began time.Time) *table {
	return &table{Table: &t, o: o, counts: newCounts(&t, began), found: make(chan []source.Shard)}
}

// run reads the table until ctx ends (nil) or something cannot be repeated.
func (t *table) run(ctx context.Context) error {
	at := change.Millis(0) // the trim horizon
	if !t.o.Horizon {
		at = change.MillisOf(time.Now())
		if now, ok := t.o.Source.Now(); ok {
			at = now
		}
	}
	listing, err := t.o.Source.List(ctx, t.Info.StreamARN)
	if err != nil {
		return fmt.Errorf("read table %s: %w", t.Source, err)
	}
	pool := t.o.Source.NewPool()
	events, pages := make(chan source.Event), make(chan *source.Page)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		_ = pool.Run(ctx, events) // ends with ctx
		return nil
	})
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			w := newWorker(t)
			for page := range pages {
				w.count(page)
				page.Release()
			}
			return nil
		})
	}
	g.Go(func() error { return t.list(ctx) })
	g.Go(func() error {
		defer close(pages)
		return t.follow(ctx, pool, listing, at, g, events, pages)
	})
	if err := g.Wait(); err != nil {
		return fmt.Errorf("read table %s: %w", t.Source, err)
	}
	return nil
}

// follow hands the shards that may be read to the pool, and the pool's pages to the workers.
func (t *table) follow(
	ctx context.Context, pool *source.Pool, l source.Listing, at change.Millis, g *errgroup.Group,
	events <-chan source.Event, pages chan<- *source.Page,
) error {
	shards := &graph{}
	read := func(ready []source.Shard, at change.Millis) {
		for _, s := range ready {
			pool.Add(t.o.Source.NewReader(startOf(t.Table, s, at)))
		}
		t.noteShards(shards)
	}
	read(shards.begin(l, t.o.Horizon), at)
	for {
		select {
		case <-ctx.Done():
			return nil
		case found := <-t.found:
			read(shards.add(found), 0)
		case ev := <-events:
			shard := ev.Reader.Feed().Shard
			switch gap := (*source.GapError)(nil); {
			case errors.As(ev.Err, &gap):
				t.o.Logger.Warn("records of a shard were lost before they were read", zap.String("shard", shard), zap.Error(gap))
				t.noteGap()
			case ev.Err != nil:
				return ev.Err
			default:
				done := ev.Page.Done
				pages <- ev.Page
				if !done {
					continue
				}
			}
			read(shards.end(shard), 0)
			g.Go(func() error { return t.findChildren(ctx, shard) })
		}
	}
}

// list lists the stream again and again: the children of a shard may be listed late.
func (t *table) list(ctx context.Context) error {
	tick := time.NewTicker(t.o.Listing)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		l, err := t.o.Source.List(ctx, t.Info.StreamARN)
		if err != nil && ctx.Err() == nil {
			t.o.Logger.Warn("list shards: will be retried", zap.Error(err))
		}
		t.hand(ctx, l.Shards)
	}
}

// findChildren looks for the children of a shard that has ended.
func (t *table) findChildren(ctx context.Context, shard string) error {
	children, err := t.o.Source.Children(ctx, t.Info.StreamARN, shard)
	if err != nil && ctx.Err() == nil {
		t.o.Logger.Warn("look for children: the next listing will", zap.String("shard", shard), zap.Error(err))
	}
	t.hand(ctx, children)
	return nil
}

// hand passes shards to follow.
func (t *table) hand(ctx context.Context, shards []source.Shard) {
	select {
	case <-ctx.Done():
	case t.found <- shards:
	}
}

func (t *table) noteShards(g *graph) {
	now, later := g.count()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shards.Reading, t.shards.Waiting = now, later
}

func (t *table) noteGap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shards.Gaps++
}
