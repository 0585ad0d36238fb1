package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// doubt is a shard about which the service gave a negative answer, with no page in between. It is
// not read while the newest answer is not settled.
type doubt struct {
	denial                 protocol.Denial
	since, alike, answered change.Millis
	endShown               bool
	held, lastGone         bool // of the last record that was read
	follows                bool // an iterator is in hand behind that record
	settled                bool
	due                    change.Millis // when it is read again once it is settled
}

// deny notes a negative answer about a shard.
func (p *process) deny(sh *checkpoint.Shard, denial protocol.Denial) {
	d := p.doubts[sh.ID]
	if d == nil {
		d = &doubt{since: p.now}
		p.doubts[sh.ID] = d
	}
	if d.denial != denial {
		d.alike = p.now
	}
	d.denial, d.answered, d.settled, d.follows = denial, p.now, false, false
	p.logf("%s is denied %s: %d", p.name, sh.ID, denial)
}

// doubted returns the shards without a settled newest answer, sorted.
func (p *process) doubted() (all []*checkpoint.Shard) {
	for id, d := range p.doubts {
		if sh := p.s.Shards[id]; sh == nil || !p.s.Readable(sh) {
			delete(p.doubts, id)
		} else if !d.settled {
			all = append(all, sh)
		}
	}
	slices.SortFunc(all, func(a, b *checkpoint.Shard) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// evidence returns what is known about a shard without a listing.
func (p *process) evidence(sh *checkpoint.Shard, d *doubt) protocol.Evidence {
	pos, _ := p.position(sh)
	e := protocol.Evidence{
		Denial: d.denial, Since: d.since.Time(), Alike: d.alike.Time(), Answered: d.answered.Time(), Now: p.now,
		Read: max(sh.Watermark, p.through[sh.ID]), After: pos.After, EndShown: d.endShown,
	}
	switch {
	case pos.After == "" || d.lastGone:
		e.Last = protocol.LastNone
	case d.held || p.mutant == EmptyEnd:
		e.Last = protocol.LastHeld
	}
	if p.mutant == NoPatience {
		e.Alike = time.Time{}
	}
	if d.denial == protocol.Trimmed {
		e.Read = max(e.Read, p.s.CompleteUntil(sh))
		e.Horizon = p.horizon(sh)
	}
	return e
}

// settle decides about a shard, by a listing if one is needed.
//
// Rule 13: protocol.Gone decides.
func (p *process) settle(sh *checkpoint.Shard) {
	d := p.doubts[sh.ID]
	e := p.evidence(sh, d)
	fate := protocol.Gone(e)
	if p.mutant == OneDenial {
		fate = map[protocol.Denial]protocol.Fate{
			protocol.NotFound: protocol.LostShard, protocol.Trimmed: protocol.LostRange, protocol.NoIterator: protocol.ReadToEnd,
		}[d.denial]
	}
	if fate == protocol.NeedsListing {
		e.Listing = p.sight(sh, d)
		if p.doubt { // what the listing shows was not stored
			return
		}
		fate = protocol.Gone(e)
		p.reachedIf(fate == protocol.NeedsListing, listingFails)
	}
	p.execute(sh, d, fate)
}

// execute does what a denial has come to.
func (p *process) execute(sh *checkpoint.Shard, d *doubt, fate protocol.Fate) {
	p.logf("%s settles %s: fate %d", p.name, sh.ID, fate)
	switch fate {
	case protocol.ReadToEnd:
		p.reached(readToEnd)
		p.reachedIf(d.held, lastRecordHeld)
		p.reachedIf(!d.endShown, endIsPosition)
		p.finish(sh)
	case protocol.LostRange, protocol.LostShard:
		p.storeGap(p.gapOf(sh, fate))
		return // it is settled once the gap is stored
	case protocol.ReadAgain:
		p.reached(readAgain)
		if d.endShown = true; p.mutant == EndAtOnce {
			p.finish(sh)
		}
	default:
		p.reached(readOn)
	}
	d.settled, d.due = true, p.now
	if fate != protocol.ReadAgain {
		d.due += backoff
	}
}

// backoff is how long a shard that was denied is not read again, in ms.
const backoff = 2500

// denied reports whether a shard is not read because of a negative answer.
func (p *process) denied(id string) bool {
	d := p.doubts[id]
	return d != nil && (!d.settled || p.now < d.due)
}

// finish ends a shard behind the last page that was read.
func (p *process) finish(sh *checkpoint.Shard) {
	pos, clock := p.position(sh)
	p.pages = append(p.pages, page{head: checkpoint.PageHead{
		Feed: change.Feed{Stream: sh.Stream, Shard: sh.ID}, From: pos, To: pos, ClockFrom: clock, Clock: clock, Done: true,
		Date: p.now,
	}})
	p.ended = true
}

// gapOf returns the gap of what a shard has lost.
func (p *process) gapOf(sh *checkpoint.Shard, fate protocol.Fate) *checkpoint.Gap {
	gap := &checkpoint.Gap{
		Feed: change.Feed{Stream: sh.Stream, Shard: sh.ID}, From: sh.Pos, Since: sh.Watermark, Until: p.now, Found: p.now,
		Reason: "records were trimmed", Ends: fate == protocol.LostShard,
	}
	if !gap.Ends {
		gap.Since = max(gap.Since, p.s.CompleteUntil(sh))
	}
	return gap
}

// sight lists the shards, stores what is new, and returns what that shows of one. The children of a
// shard in which nothing follows are looked for first.
func (p *process) sight(sh *checkpoint.Shard, d *doubt) *protocol.Sighting {
	began := p.now.Time()
	if d.denial == protocol.NoIterator {
		if g := p.childrenOf(sh); len(g.Shards) > 0 {
			p.storeListing(g)
			return &protocol.Sighting{Began: began, Ended: true}
		}
	}
	g, shows := p.describe(sh.Stream)
	seen := &protocol.Sighting{Began: began}
	switch {
	case g == nil:
		return seen
	case shows == protocol.StreamUnknown:
		table := p.table(sh.Stream, shows)
		seen.StreamGone = table == protocol.StreamTakes || table == protocol.StreamOff
		seen.Complete = table == protocol.StreamReplaced
		return seen
	}
	if !p.judgeEnd(g, shows) || !p.storeListing(g) {
		return seen
	}
	seen.Complete = true
	for _, x := range g.Shards {
		if x.ID == sh.ID {
			seen.Listed, seen.Ended = true, seen.Ended || x.Closed
			if x.Closed {
				seen.Ending = p.shard(x.ID).ending
			}
		}
		seen.Ended = seen.Ended || x.Parent == sh.ID
	}
	return seen
}

// childrenOf lists the children of a shard.
func (p *process) childrenOf(sh *checkpoint.Shard) *checkpoint.Graph {
	g := p.list(sh.Stream, true)
	g.Complete, g.Disabled = false, false
	g.Shards = slices.DeleteFunc(g.Shards, func(x checkpoint.ShardSeen) bool { return x.Parent != sh.ID })
	return g
}

// storeListing stores what is new in a listing, and reports whether that worked.
func (p *process) storeListing(g *checkpoint.Graph) bool {
	for _, part := range checkpoint.DiffListing(p.s, g, checkpoint.ListingPartBytes) {
		if !p.append(part, nil) {
			return false
		}
	}
	if g.Complete {
		p.listed = g.Date
	}
	return true
}

// judgeEnd notes in a listing what two answers prove of the stream's end, and reports whether it
// shows anything.
func (p *process) judgeEnd(g *checkpoint.Graph, shows protocol.StreamShown) bool {
	live := p.s.LiveStream()
	off := shows == protocol.StreamOff || shows == protocol.StreamUnknown
	g.Disabled = off && (live.Disabled || p.streamEnded(g.Stream, shows))
	g.Enabled = shows == protocol.StreamTakes && live.Disabled && p.mutant != EndForGood
	p.reachedIf(off && !g.Disabled, endRefuted)
	p.reachedIf(g.Enabled, endWithdrawn)
	if p.mutant == NeverReopen {
		g.Shards = slices.DeleteFunc(g.Shards, func(x checkpoint.ShardSeen) bool {
			sh := p.s.Shards[x.ID]
			return sh != nil && sh.Phase == checkpoint.PhaseFinished && !x.Closed
		})
	}
	return shows != protocol.StreamUnknown || g.Disabled
}

// streamEnded reads the table's description after the stream has answered that it is off, or is
// unknown.
func (p *process) streamEnded(arn string, shows protocol.StreamShown) bool {
	if p.mutant == OneEnd {
		return true
	}
	at := p.now.Time()
	stream := protocol.StreamAnswer{By: protocol.DescribesStream, Shows: shows, Asked: at, Answered: at}
	at = at.Add(time.Millisecond)
	table := protocol.StreamAnswer{By: protocol.DescribesTable, Shows: p.table(arn, shows), Asked: at, Answered: at}
	return protocol.StreamEnded(stream, table)
}
