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
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// table is the dry run of one table. The goroutine of follow owns the graph.
type table struct {
	*Table
	o      *Options
	counts *counts
	found  chan []source.Shard // listed beside the reading

	confirmed chan doubt      // what became of shards about which the service gave a negative answer
	failed    map[string]bool // shards whose last read failed for good; of follow

	mu     sync.Mutex // covers shards
	shards Shards
}

func newTable(o *Options, t Table, began time.Time) *table {
	return &table{
		Table: &t, o: o, counts: newCounts(&t, began), found: make(chan []source.Shard), confirmed: make(chan doubt),
		failed: map[string]bool{},
	}
}

// run reads the table until ctx ends (nil) or something cannot be repeated.
func (t *table) run(ctx context.Context) error {
	at := change.Millis(0) // the trim horizon
	if !t.o.Horizon {
		at = t.now()
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
			d, err := t.take(pool, ev, pages)
			if err != nil {
				return err
			}
			if d != nil {
				g.Go(func() error { t.confirm(ctx, *d); return nil })
			}
		case d := <-t.confirmed:
			if shard := d.reader.Feed().Shard; t.settle(pool, shards, d) {
				read(shards.end(shard), 0)
				g.Go(func() error { return t.findChildren(ctx, shard) })
			}
		}
	}
}

// take hands a page to the workers. It returns a doubt about a shard if the service answers that
// nothing follows, or that the shard is gone.
//
// Rule 13: an error that no retry mends ends the dry run when it comes a second time.
func (t *table) take(pool *source.Pool, ev source.Event, pages chan<- *source.Page) (*doubt, error) {
	shard := ev.Reader.Feed().Shard
	if gap := (*source.GapError)(nil); errors.As(ev.Err, &gap) {
		return &doubt{reader: ev.Reader, gap: gap}, nil
	}
	if ev.Err != nil && t.failed[shard] {
		return nil, ev.Err
	}
	if t.failed[shard] = ev.Err != nil; t.failed[shard] {
		ev.Reader.ReadOn()
		pool.Add(ev.Reader)
		return nil, nil
	}
	done := ev.Page.Done
	pages <- ev.Page
	if done {
		return &doubt{reader: ev.Reader}, nil
	}
	return nil, nil
}

// settle executes what a negative answer has come to, and reports whether the shard has ended.
func (t *table) settle(pool *source.Pool, shards *graph, d doubt) (ended bool) {
	switch shard := d.reader.Feed().Shard; d.fate {
	case protocol.ReadToEnd:
		return true
	case protocol.LostShard:
		t.o.Logger.Warn("a shard is gone before it was read", zap.String("shard", shard))
		t.noteGap()
		return true
	case protocol.LostRange:
		t.o.Logger.Warn("records of a shard were lost before they were read", zap.String("shard", shard), zap.Error(d.gap))
		t.noteGap()
		pool.Add(t.o.Source.NewReader(startOf(t.Table, shards.shards[shard].Shard, 0)))
		return false
	case protocol.ReadAgain:
		d.reader.ReadAgain()
	default:
		d.reader.ReadOn()
	}
	pool.Add(d.reader)
	return false
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
