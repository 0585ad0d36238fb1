package ingest

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// confirmer finds out what becomes of shards about which the service gave a negative answer: that a
// shard is gone, that its records were trimmed, that none follow. A shard is not read meanwhile,
// which takes one call or one listing; when that fails the shard is read on.
//
// Rule 13: the answer is stored only once another one confirms it that was asked for later, of
// another kind where there is one; protocol.Gone decides.
type confirmer struct {
	o        *Options
	lister   *lister
	verdicts chan verdict

	children map[change.Feed]bool // ended shards that are read again: whether children were listed

	mu     sync.Mutex // covers doubts
	doubts []doubt
	added  chan struct{} // capacity 1
}

// doubt is a shard with a reader that a negative answer has ended.
type doubt struct {
	reader *source.Reader
	gap    *source.GapError // nil: a page without the iterator that follows
}

// verdict is what the answer has come to.
type verdict struct {
	doubt
	fate      protocol.Fate
	childless bool // for ReadToEnd: no child was listed
}

func newConfirmer(o *Options, l *lister) *confirmer {
	return &confirmer{
		o: o, lister: l, verdicts: make(chan verdict), added: make(chan struct{}, 1),
		children: map[change.Feed]bool{},
	}
}

// add takes a doubt. It never blocks.
func (c *confirmer) add(d doubt) {
	c.mu.Lock()
	c.doubts = append(c.doubts, d)
	c.mu.Unlock()
	signal(c.added)
}

func (c *confirmer) take() []doubt {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.doubts
	c.doubts = nil
	return all
}

// run settles doubts until ctx ends; nil then.
func (c *confirmer) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.added:
		}
		if err := c.settle(ctx, c.take()); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// fewEnds is how many shards that ended may be asked about one by one: their children are known in
// two seconds, by the calls that a stream takes. With ten times as many, the generation of a large
// stream would wait for twenty seconds more before it is listed; with a tenth, two shards that end
// together would cost a listing of the whole stream.
const fewEnds = 16

// settle decides about shards, by one listing for all that need it. A few shards that ended are
// asked about one by one first, where that takes fewer calls.
func (c *confirmer) settle(ctx context.Context, doubts []doubt) error {
	open := c.decideAtOnce(ctx, doubts)
	pages := source.ListingCalls(c.lister.current().shards)
	if len(open) > fewEnds {
		open = c.gather(ctx, open, source.ListingTime(pages))
	} else if len(open) <= pages {
		ended := open
		open = nil
		for _, d := range ended {
			if d.gap != nil { // its children say nothing
				open = append(open, d)
				continue
			}
			settled, err := c.askForChildren(ctx, d)
			if err != nil {
				return err
			}
			if !settled {
				open = append(open, d)
			}
		}
	}
	if len(open) == 0 {
		return nil
	}
	return c.list(ctx, open)
}

// decideAtOnce decides about the shards that need no listing, and returns the others.
func (c *confirmer) decideAtOnce(ctx context.Context, doubts []doubt) (open []doubt) {
	for _, d := range doubts {
		if fate := protocol.Gone(c.evidence(d)); fate != protocol.NeedsListing {
			c.decide(ctx, verdict{doubt: d, fate: fate})
		} else {
			open = append(open, d)
		}
	}
	return open
}

// gather takes the further shards that end while a generation of the stream ends: one listing
// serves them all, and it must begin behind the end of each. It waits until none has come for a
// tenth of the time that the listing takes, and not longer than that time.
func (c *confirmer) gather(ctx context.Context, open []doubt, listing time.Duration) []doubt {
	last := time.NewTimer(listing)
	defer last.Stop()
	for {
		select {
		case <-ctx.Done():
			return open
		case <-last.C:
			return open
		case <-time.After(listing / 10):
			return open
		case <-c.added:
			open = append(open, c.decideAtOnce(ctx, c.take())...)
		}
	}
}

// evidence returns what is known about a shard without a listing.
func (c *confirmer) evidence(d doubt) protocol.Evidence {
	e := EvidenceOf(d.reader, d.gap)
	e.Now, e.Patience = c.o.now(), c.o.Periods.Patience
	return e
}

// EvidenceOf returns the evidence of a reader that a negative answer has ended, for protocol.Gone;
// gap is nil after a page without the iterator that follows.
func EvidenceOf(reader *source.Reader, gap *source.GapError) protocol.Evidence {
	by := reader.Denied()
	e := protocol.Evidence{
		Denial: protocol.NoIterator, Read: reader.Read(), After: by.After,
		Since: by.Since, Alike: by.Alike, Answered: by.Answered, EndShown: by.EndShown,
	}
	switch {
	case by.LastNone:
		e.Last = protocol.LastNone
	case by.LastHeld:
		e.Last = protocol.LastHeld
	}
	if gap == nil {
		return e
	}
	if e.Denial = protocol.NotFound; gap.Trimmed() {
		e.Denial, e.Read = protocol.Trimmed, gap.From
		e.Horizon = protocol.Horizon{First: gap.Horizon.First, Nothing: gap.Horizon.Nothing}
	}
	return e
}

// decide hands over what becomes of a shard.
func (c *confirmer) decide(ctx context.Context, v verdict) {
	feed := v.reader.Feed()
	switch v.fate {
	case protocol.NeedsListing:
		v.fate = protocol.ReadOn // there is none: nothing confirms the answer
	case protocol.ReadAgain:
		c.children[feed] = !v.childless
	case protocol.ReadToEnd:
		if had, again := c.children[feed]; again {
			v.childless = !had
			delete(c.children, feed)
		}
	}
	select {
	case <-ctx.Done():
	case c.verdicts <- v:
	}
}

// askForChildren looks once for the children of a shard in which nothing follows, and reports
// whether that settles it.
func (c *confirmer) askForChildren(ctx context.Context, d doubt) (settled bool, err error) {
	began, feed := time.Now(), d.reader.Feed()
	children := c.childrenOf(ctx, feed)
	if len(children) == 0 {
		return false, nil
	}
	err = c.lister.handoff.request(ctx, &checkpoint.Graph{
		Stream: feed.Stream, Date: c.o.now(), Shards: ListedShards(children),
	})
	if err != nil {
		return false, err
	}
	e := c.evidence(d)
	e.Listing = &protocol.Sighting{Began: began, Ended: true}
	c.decide(ctx, verdict{doubt: d, fate: protocol.Gone(e)})
	return true, nil
}

// childrenOf returns the listed children of a shard; none if the call fails: a complete listing
// follows, and reports what fails.
func (c *confirmer) childrenOf(ctx context.Context, feed change.Feed) []source.Shard {
	children, err := c.o.Source.ChildrenNow(ctx, feed.Stream, feed.Shard)
	if err != nil {
		c.o.Logger.Debug("list the children of a shard", zap.String("shard", feed.Shard), zap.Error(err))
		return nil
	}
	return children
}

// list makes a complete listing, stores what is new in it, and decides about shards by what it
// shows of them.
func (c *confirmer) list(ctx context.Context, doubts []doubt) error {
	began := time.Now()
	shown, children, sighting := map[string]*source.Shard{}, map[string]bool{}, protocol.Sighting{Began: began}
	stream, known := doubts[0].reader.Feed().Stream, c.lister.current()
	ls, answer, err := c.lister.describeStream(ctx, stream)
	switch {
	case answer.Shows == protocol.StreamUnknown && len(ls.Shards) == 0:
		_, table := c.lister.describeTable(ctx, stream)
		sighting.StreamGone = table.Shows == protocol.StreamTakes || table.Shows == protocol.StreamOff
		sighting.Complete = table.Shows == protocol.StreamReplaced
	case err == nil:
		if err := c.lister.store(ctx, known, ls, answer); err != nil {
			return err
		}
		sighting.Complete = len(ls.Shards) > 0 || ls.Disabled() // a stream that takes writes has a shard
	default:
		c.o.Logger.Warn("list shards to confirm what the service answers: it is asked again", zap.Error(err))
	}
	for i := range ls.Shards {
		shown[ls.Shards[i].ID], children[ls.Shards[i].Parent] = &ls.Shards[i], true
	}
	for _, d := range doubts {
		e, seen, id := c.evidence(d), sighting, d.reader.Feed().Shard
		if sh := shown[id]; sh != nil {
			seen.Listed, seen.Ended, seen.Ending = true, sh.Closed, change.SequenceNumber(sh.Ending)
		}
		seen.Ended = seen.Ended || children[id]
		e.Listing = &seen
		c.decide(ctx, verdict{doubt: d, fate: protocol.Gone(e), childless: !children[id]})
	}
	return nil
}
