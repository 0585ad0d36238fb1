package dryrun

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// doubt is a shard with a reader that a negative answer of the service has ended.
type doubt struct {
	reader *source.Reader
	gap    *source.GapError // nil: a page behind which nothing follows
	fate   protocol.Fate    // what becomes of it, once it is confirmed
}

// confirm finds out what becomes of a shard, and hands that to follow.
//
// Rule 13: as in a run, protocol.Gone decides, by a listing that begins after the answer.
func (t *table) confirm(ctx context.Context, d doubt) {
	e := ingest.EvidenceOf(d.reader, d.gap)
	e.Now = t.now()
	if d.fate = protocol.Gone(e); d.fate == protocol.NeedsListing || d.gap == nil {
		e.Listing = t.sight(ctx, d.reader.Feed().Shard)
		d.fate = protocol.Gone(e)
	}
	select {
	case <-ctx.Done():
	case t.confirmed <- d:
	}
}

// sight lists the stream, hands over what it shows, and returns what it shows of one shard.
func (t *table) sight(ctx context.Context, shard string) *protocol.Sighting {
	seen := &protocol.Sighting{Began: time.Now()}
	l, err := t.o.Source.List(ctx, t.Info.StreamARN)
	if err != nil {
		if ctx.Err() == nil {
			t.o.Logger.Warn("list shards to confirm what the service answers: it is asked again", zap.Error(err))
		}
		seen.StreamGone = source.Classify(err) == failure.Gone
		return seen
	}
	seen.Complete = len(l.Shards) > 0 // a stream has a shard
	for _, s := range l.Shards {
		if s.ID == shard {
			seen.Listed, seen.Ended, seen.Ending = true, seen.Ended || s.Closed, change.SequenceNumber(s.Ending)
		}
		seen.Ended = seen.Ended || s.Parent == shard
	}
	t.hand(ctx, l.Shards)
	return seen
}

// hand passes shards to follow.
func (t *table) hand(ctx context.Context, shards []source.Shard) {
	select {
	case <-ctx.Done():
	case t.found <- shards:
	}
}

// now returns the time of the service, or of this machine until the service has returned one.
func (t *table) now() change.Millis {
	if now, ok := t.o.Source.Now(); ok {
		return now
	}
	return change.MillisOf(time.Now())
}
