package ingest

import (
	"context"
	"errors"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// readShards reads every readable shard until ctx ends; nil then, and only then a drain begins.
func readShards(ctx context.Context, o *Options, h *handoff, l *lister) (err error) {
	defer func() {
		if err == nil {
			close(h.drained)
		}
	}()
	pool := o.Source.NewPool()
	events := make(chan source.Event)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		_ = pool.Run(ctx, events) // ends with ctx, whose cause is known here; pages that are not received are released
		return nil
	})
	r := &readers{
		o: o, handoff: h, lister: l, pool: pool, g: g,
		added: map[string]bool{}, reservation: newReservation(o, g),
	}
	r.confirmer = newConfirmer(o, l)
	g.Go(func() error { return r.confirmer.run(ctx) })
	g.Go(func() error { return r.run(ctx, events) })
	err = g.Wait()
	h.leave()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// readers hands shards to the pool and the pool's pages to the write loop. The goroutine of run
// owns its fields.
type readers struct {
	o       *Options
	handoff *handoff
	lister  *lister
	pool    *source.Pool
	g       *errgroup.Group
	// added are the shards that the pool was given in this life. A shard with an ended reader is
	// not added again, although the state may show it readable until its last page is stored: the
	// next life reads it from what is stored.
	added       map[string]bool
	reservation *reservation
	confirmer   *confirmer
}

func (r *readers) run(ctx context.Context, events <-chan source.Event) error {
	defer r.reservation.releaseAll()
	for {
		select {
		case <-ctx.Done():
			return nil
		case tasks := <-r.handoff.shards:
			r.addShards(tasks)
		case <-r.handoff.readAll:
			r.pool.ReadAll()
		case shard := <-r.reservation.granted:
			for _, a := range r.reservation.resume(ctx, shard) {
				if err := r.send(ctx, a); err != nil {
					return err
				}
			}
		case v := <-r.confirmer.verdicts:
			if err := r.settle(ctx, v); err != nil {
				return err
			}
		case ev := <-events:
			if err := r.receive(ctx, ev); err != nil {
				return err
			}
		}
	}
}

// addShards gives the pool the shards that became readable.
func (r *readers) addShards(tasks []shardTask) {
	for _, t := range tasks {
		shard := t.feed.Shard
		if t.unreadable {
			delete(r.added, shard)
			continue
		}
		if r.added[shard] {
			continue
		}
		r.added[shard] = true
		r.pool.Add(r.o.Source.NewReader(source.Start{
			Feed: t.feed, Table: r.o.Info.Name, Schema: r.o.Info.Schema, Position: t.position, Clock: t.clock,
			Closed: t.closed, Since: t.since, Read: t.read, Life: t.life,
		}))
	}
}

// receive passes on a page. What the service answers about the end of a shard, or about records
// that are lost, is confirmed before anything is stored of it.
func (r *readers) receive(ctx context.Context, ev source.Event) error {
	if ev.Err != nil {
		gap := (*source.GapError)(nil)
		if !errors.As(ev.Err, &gap) {
			return r.failed(ctx, ev.Err)
		}
		r.confirmer.add(doubt{reader: ev.Reader, gap: gap})
		return nil
	}
	if !ev.Page.Done {
		return r.pass(ctx, ev.Reader, arrival{page: ev.Page})
	}
	// Rule 13: the records of the last page are data, that none follow is not.
	if ev.Page.Done = false; len(ev.Page.Records)+len(ev.Page.Heartbeats) == 0 {
		ev.Page.Release()
	} else if err := r.pass(ctx, ev.Reader, arrival{page: ev.Page}); err != nil {
		return err
	}
	r.confirmer.add(doubt{reader: ev.Reader})
	return nil
}

// settle executes what a negative answer of the service has come to.
func (r *readers) settle(ctx context.Context, v verdict) error {
	switch v.fate {
	case protocol.ReadToEnd:
		return r.pass(ctx, v.reader, arrival{page: v.reader.End(), childless: v.childless})
	case protocol.LostRange, protocol.LostShard:
		return r.pass(ctx, v.reader, arrival{gap: request{body: r.describeGap(&v)}})
	}
	if v.fate == protocol.ReadAgain {
		v.reader.ReadAgain()
	} else {
		v.reader.ReadOn()
	}
	r.pool.Add(v.reader)
	return nil
}

// pass passes on a page, the end of a shard or a gap. A page with versions that run ahead of the
// reservation waits for it, and so does everything behind the page.
func (r *readers) pass(ctx context.Context, of *source.Reader, a arrival) error {
	if r.reservation.hold(ctx, of.Feed().Shard, a) {
		return nil
	}
	return r.send(ctx, a)
}

// failed ends the life with an error that no retry of the reader fixes, no permission or no table.
// The table is tried again later.
func (r *readers) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// send passes a page or a gap to the write loop, and looks for the children of a shard that has
// ended without them.
func (r *readers) send(ctx context.Context, a arrival) error {
	if a.page == nil {
		r.sendGap(ctx, a.gap.body.(*checkpoint.Gap))
		return nil
	}
	feed := a.page.Feed
	if !r.handOver(ctx, a) {
		a.release()
		return nil
	}
	if a.childless {
		r.g.Go(func() error { return r.lister.findChildren(ctx, feed) })
	}
	return nil
}

// handOver gives the write loop an arrival, and reports whether it did: not once ctx has ended.
//
// Rule 2: what follows an arrival that was not handed over is not handed over either. A select
// alone would choose by chance where there is room and ctx has ended.
func (r *readers) handOver(ctx context.Context, a arrival) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case r.handoff.arrivals <- a:
		return true
	}
}

// describeGap returns the log's entry for lost records.
//
// Rule 8: what is lost is reported with its range, and never jumped over.
func (r *readers) describeGap(v *verdict) *checkpoint.Gap {
	e, now := v.gap, r.o.now()
	if e == nil { // the answer was that nothing follows
		e = &source.GapError{
			Feed: v.reader.Feed(), Position: v.reader.End().To, From: v.reader.Read(), To: now, Err: source.ErrShardGone,
		}
	}
	r.o.Logger.Error("gap: records were lost before they were read", zap.String("shard", e.Feed.Shard),
		zap.Int64("from_ms", int64(e.From)), zap.Int64("to_ms", int64(e.To)), zap.Bool("whole", v.fate == protocol.LostShard),
		zap.Error(e.Err))
	return &checkpoint.Gap{
		Feed: e.Feed, From: e.Position, Since: e.From, Until: e.To, Reason: e.Err.Error(), Found: now,
		Ends: v.fate == protocol.LostShard,
	}
}

// sendGap passes on a gap behind the pages of its shard. Nothing of the shard follows in this life.
func (r *readers) sendGap(ctx context.Context, g *checkpoint.Gap) {
	hand := func(req request) error {
		if !r.handOver(ctx, arrival{gap: req}) {
			return context.Cause(ctx)
		}
		return nil
	}
	r.g.Go(func() error {
		if err := r.handoff.requestVia(ctx, g, hand); err != nil {
			return err
		}
		if g.Ends {
			return r.lister.findChildren(ctx, g.Feed)
		}
		return nil
	})
}
