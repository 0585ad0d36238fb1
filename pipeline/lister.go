package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/source"
)

// lister keeps the shard graph in the log true: complete listings on a slow timer and when somebody asks,
// children at a shard's end, parents that nobody lists any more, a new stream after the old one was disabled.
type lister struct {
	t  *table
	in *ingest

	mu       sync.Mutex
	live     string   // ARN of the stream that is read
	missing  []string // parents that waiting shards name and nobody has seen
	begun    int64    // service clock: when the last complete listing began
	applied  bool     // the live stream is read to its end, and every sink has passed it
	barren   bool     // a shard has ended and no child of it is known yet
	top      int64
	through  int64
	disabled bool
	gapped   []string // shards of the live stream that nobody reads

	kick chan struct{} // capacity 1: list now
	beat chan struct{} // capacity 1: say what was found
}

func newLister(t *table, in *ingest) *lister {
	return &lister{t: t, in: in, kick: make(chan struct{}, 1), beat: make(chan struct{}, 1)}
}

// learn takes over what the lister must know of the state. The writer's loop calls it.
func (l *lister) learn(s *checkpoint.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := s.LiveStream()
	if live == nil {
		return
	}
	l.live, l.disabled, l.missing = live.ARN, live.Disabled, s.MissingParents()
	l.applied = s.Drained(live.ARN) && s.LowMark() >= s.LastFrame
	l.top, l.through = s.HighestVersion(), s.ReadWatermark()
	l.begun = max(l.begun, s.Listed)
	l.gapped, l.barren = s.GappedShards(), s.AwaitsChildren()
	if len(l.missing) > 0 {
		signal(l.kick)
	}
}

func (l *lister) listed() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}

// childless says that the children of a shard that has ended are late.
func (l *lister) childless() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.barren
}

// asked fires when a beat is wanted before its time.
func (l *lister) asked() <-chan struct{} { return l.beat }

// list works until ctx ends; nil then.
func (in *ingest) list(ctx context.Context) error { return in.lister.run(ctx) }

func (l *lister) run(ctx context.Context) error {
	p := l.t.p.o.Periods
	slow, look := time.NewTicker(p.Listing), time.NewTicker(p.Describe)
	defer slow.Stop()
	defer look.Stop()
	nudges, err := l.t.logOf().BeatRequests(ctx)
	if err != nil {
		return fmt.Errorf("listen for nudges: %w", err)
	}
	// What came while nobody looked: a child whose parent was the last thing that was read before a crash.
	signal(l.kick)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-slow.C:
			err = l.complete(ctx)
		case <-l.kick:
			err = l.complete(ctx)
		case <-nudges:
			err = l.complete(ctx)
			signal(l.beat)
		case <-look.C:
			if err = l.describe(ctx); err == nil && l.childless() {
				err = l.complete(ctx)
			}
		}
		if err := l.tolerate(ctx, err); err != nil {
			return err
		}
	}
}

// tolerate returns the errors that end the life, and logs those that the next listing may not have.
func (l *lister) tolerate(ctx context.Context, err error) error {
	switch outcome.OfListing(ctx, err).Action {
	case outcome.Escalate:
		return err
	case outcome.Retry:
		l.t.log.Warn("list shards: will be retried", zap.Error(err))
	}
	return nil
}

// complete lists the whole stream and writes down what is new.
func (l *lister) complete(ctx context.Context) error {
	l.mu.Lock()
	arn, missing := l.live, slices.Clone(l.missing)
	l.mu.Unlock()
	if arn == "" {
		return nil
	}
	ls, err := l.t.p.src.List(ctx, arn)
	if err != nil && len(ls.Shards) == 0 {
		return err
	}
	g := graphOf(ls)
	if ls.Complete {
		if g.Gone, err = l.gone(ctx, ls, missing); err != nil {
			return err
		}
	}
	if err := l.in.find(ctx, g); err != nil {
		return err
	}
	l.mu.Lock()
	if ls.Complete {
		l.begun = max(l.begun, ls.Started)
	}
	l.mu.Unlock()
	return err
}

func graphOf(ls source.Listing) *checkpoint.Graph {
	g := &checkpoint.Graph{Stream: ls.Stream, Date: ls.Started, Complete: ls.Complete, Disabled: ls.Disabled()}
	for _, sh := range ls.Shards {
		g.Shards = append(g.Shards, checkpoint.ShardSeen{ID: sh.ID, Parent: sh.Parent, Closed: sh.Closed})
	}
	return g
}

// gone returns the missing parents that do not exist any more.
//
// Rule 3: a parent that is not listed counts as finished only from a complete listing begun after its child
// was seen, and when the service itself says that it does not know the shard.
func (l *lister) gone(ctx context.Context, ls source.Listing, missing []string) (gone []string, err error) {
	for _, id := range missing {
		if slices.ContainsFunc(ls.Shards, func(s source.Shard) bool { return s.ID == id }) {
			continue
		}
		exists, err := l.t.p.src.Exists(ctx, change.Feed{Stream: ls.Stream, Shard: id})
		if err != nil {
			return nil, err
		}
		if !exists {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

// children looks for the children of a shard that just ended. They may show up seconds later; a complete
// listing follows when they do not.
func (l *lister) children(ctx context.Context, feed change.Feed) error {
	found, err := l.t.p.src.Children(ctx, feed.Stream, feed.Shard)
	if err != nil || len(found) == 0 {
		signal(l.kick)
		if err != nil && ctx.Err() == nil {
			l.t.log.Warn("look for children: the next listing will", zap.String("shard", feed.Shard), zap.Error(err))
		}
		return nil
	}
	g := &checkpoint.Graph{Stream: feed.Stream, Date: l.t.now()}
	for _, sh := range found {
		g.Shards = append(g.Shards, checkpoint.ShardSeen{ID: sh.ID, Parent: sh.Parent, Closed: sh.Closed})
	}
	return l.in.find(ctx, g)
}

// describe looks whether the table has a new stream: then the old one takes no more writes, and what was
// written between the two is lost.
func (l *lister) describe(ctx context.Context) error {
	info, err := l.t.p.src.Table(ctx, l.t.Source)
	if err != nil {
		return err
	}
	l.mu.Lock()
	live, disabled, applied := l.live, l.disabled, l.applied
	top, through := l.top, l.through
	l.mu.Unlock()
	if live == "" || info.StreamARN == live || info.StreamARN == "" {
		return nil
	}
	if info.ID != "" && l.t.Info.ID != "" && info.ID != l.t.Info.ID {
		return &outcome.HaltError{Code: "table_recreated",
			Reason: "the table was deleted and created again: its items are not the ones that were copied"}
	}
	if !disabled {
		return l.retire(ctx, live)
	}
	if !applied {
		return nil // its shards are still being read and applied
	}
	return l.next(ctx, live, info.StreamARN, top, through)
}

// retire writes down that the old stream is disabled; whatever shards it still has are drained.
func (l *lister) retire(ctx context.Context, arn string) error {
	ls, err := l.t.p.src.List(ctx, arn)
	if err != nil && source.Classify(err) != failure.Gone {
		return err
	}
	l.mu.Lock()
	gapped := slices.Clone(l.gapped)
	l.mu.Unlock()
	g := graphOf(ls)
	g.Stream, g.Disabled, g.Complete = arn, true, false
	if g.Date == 0 {
		g.Date = l.t.now()
	}
	if err != nil { // the stream itself is gone: each reader says so of its shard, behind what it has read
		g.Gone = gapped
	}
	return l.in.find(ctx, g)
}

// next starts the new stream inside the same life: a gap, then its shards from their trim horizons, with
// versions above all earlier ones (Rule 5).
func (l *lister) next(ctx context.Context, old, arn string, top, through int64) error {
	ls, err := l.t.p.src.List(ctx, arn)
	if err != nil || !ls.Complete || len(ls.Shards) == 0 {
		return errors.Join(err, outcome.ErrNotListed)
	}
	l.t.log.Error("the table's stream was disabled and enabled again: changes in between are lost",
		zap.String("old", old), zap.String("new", arn))
	// Each step may be repeated: the row, the gap, the start, which ends it.
	if err := l.t.adopt(ctx, arn); err != nil {
		return err
	}
	err = l.in.find(ctx, &checkpoint.Gap{
		Feed: change.Feed{Stream: old}, Since: through, Until: ls.Started, Found: ls.Started, Ends: true,
		Reason: "the stream was disabled and enabled again; what was written in between is in no stream",
	})
	if err != nil {
		return err
	}
	g := graphOf(ls)
	return l.in.find(ctx, &checkpoint.Start{Stream: arn, Date: ls.Started, Floor: top, Shards: g.Shards})
}
