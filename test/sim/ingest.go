package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// start stores where the shards of a stream start: the first one of a log, or a new one after the
// old one has ended.
func (p *process) start() {
	live := p.s.LiveStream()
	g := p.list(p.live().arn, true)
	if len(g.Shards) == 0 {
		return
	}
	wish := protocol.StartWish{Free: true, Backfill: protocol.BackfillNone}
	if p.o.backfill || p.adopted {
		wish.Backfill = checkpoint.FromScan
	}
	if p.o.workers {
		wish.Backfill = checkpoint.FromExport
	}
	b, _ := protocol.PlanStart(wish, g.Date)
	switch {
	case live != nil:
		gap, next := protocol.NextStart(live.ARN, g.Stream, p.s.ReadWatermark(), g.Date, p.s.HighestVersion())
		b = next
		p.described = p.now
		if p.reachedIf(p.lostBetween(gap), gapBetween) && !p.append(gap, nil) {
			return
		}
		if p.one(2) { // something fails in between, and a later life goes on
			p.doubt = true
			p.freeze(10 * p.choose(4))
			return
		}
	case p.adopted:
		b.Floor = p.floor
	case p.lives > 0:
		b = protocol.RecoveredStart("", p.floor, g.Date, false)
		if p.mutant == NoFloor {
			b.Floor, b.After = 0, 0
		}
	}
	b.Stream, b.Shards = g.Stream, g.Shards
	p.append(b, nil)
}

// lostBetween reports whether the gap between two streams must be stored.
func (p *process) lostBetween(g *checkpoint.Gap) bool {
	if p.mutant == OneGapBetween {
		return !slices.ContainsFunc(p.s.Gaps, func(o checkpoint.Gap) bool { return o.Feed == g.Feed })
	}
	return p.s.PrepareGap(g)
}

// stillLive reports whether the stream that the log reads is the table's.
func (p *process) stillLive() bool { return p.s.LiveStream().ARN == p.live().arn }

// nextStream returns what follows from a description of the table.
func (p *process) nextStream() protocol.StreamStep {
	live, shows := p.s.LiveStream(), protocol.StreamReplaced
	if p.stillLive() {
		shows = protocol.StreamTakes
	}
	// The simulation learns that a stream takes no more records from its listings alone.
	return protocol.NextStream(shows, live.Disabled, p.s.Drained(live.ARN) && p.s.AllApplied())
}

// refresh lists the shards and stores what is new.
func (p *process) refresh(complete bool) {
	live := p.s.LiveStream()
	p.looked = p.now
	g, shows := p.describe(live.ARN)
	if !complete {
		g, shows = p.list(live.ARN, false), protocol.StreamTakes
		if p.s.LiveStream().Disabled {
			shows = protocol.StreamOff
		}
	}
	if g == nil || !p.judgeEnd(g, shows) {
		return
	}
	switch {
	case shows == protocol.StreamUnknown: // the stream is gone: readers report that of their shards
		g.Complete, g.Gone = false, p.s.GappedShards()
		if p.mutant != ForgetParents {
			g.Gone = append(g.Gone, p.s.MissingParents()...)
		}
	case complete:
		for _, id := range p.s.MissingParents() {
			if p.reachedIf(p.find(id) == nil, parentsForgotten) {
				g.Gone = append(g.Gone, id)
			}
		}
	}
	if p.storeListing(g) {
		p.ended = p.ended && p.s.AwaitsChildren()
	}
}

// readable returns the shards that may be read, sorted, without shards that have their end in hand.
func (p *process) readable() (all []*checkpoint.Shard) {
	for _, id := range slices.Sorted(maps.Keys(p.s.Shards)) {
		if sh := p.s.Shards[id]; p.s.Readable(sh) && !p.denied(id) {
			if pg := p.inHand(id); pg == nil || !pg.head.Done {
				all = append(all, sh)
			}
		}
	}
	return all
}

// readShard reads a page of a shard.
func (p *process) readShard(sh *checkpoint.Shard, limit int) {
	pos, clock := p.position(sh)
	if since := p.s.CompleteUntil(sh); pos.After == "" && since > 0 && p.now-since > retention {
		p.deny(sh, protocol.Trimmed)
		return
	}
	d := p.doubts[sh.ID]
	at := d != nil && d.endShown && !d.lastGone && pos.After != "" && !d.follows
	r := p.read(p.find(sh.ID), pos, limit, at)
	if at && r.denial == protocol.Trimmed { // that says nothing about what is behind the last record
		p.reached(lastRecordGone)
		d.lastGone = true
		return
	}
	p.logf("%s reads %s: %d records, denied: %d", p.name, sh.ID, len(r.records), r.denial)
	p.receive(sh, r, checkpoint.PageHead{
		Feed: change.Feed{Stream: sh.Stream, Shard: sh.ID}, From: pos, To: pos, ClockFrom: clock, Clock: clock, Date: p.now,
		Records: len(r.records),
	})
}

// receive gives the records of a page their versions, and keeps the page; an empty one only records
// how far was read.
//
// Rule 5: versions are assigned once, by the clock of the shard. Rule 13: the records of the last
// page are data, that none follow is not.
func (p *process) receive(sh *checkpoint.Shard, r reply, head checkpoint.PageHead) {
	clock, pg, of := change.Clock(head.ClockFrom), page{}, p.s.LifeOf(sh.Stream)
	for i, rec := range r.records {
		v := clock.NextIn(of, rec.created)
		p.reachedIf(v == change.LowestRead(of.Floor)+1 && v > change.Version(rec.created), firstAboveFloor)
		clock += change.Clock(rec.ahead)
		v += rec.ahead
		pg.records = append(pg.records, stored{rec, v})
		head.To, head.Newest = change.Position{After: rec.position()}, rec.created
		if i == 0 {
			head.Oldest = rec.created
		}
		p.issue(v)
	}
	if head.Clock = change.Version(clock); head.Records > 0 {
		pg.head = head
		p.pages = append(p.pages, pg)
	}
	d := p.doubts[sh.ID]
	if d != nil && head.Records > 0 { // whatever was denied before
		d.since, d.denial, d.lastGone, d.held, d.follows = p.now, 0, false, false, false
	}
	if d != nil && d.endShown && head.Records == 0 {
		d.held = r.held || d.held && d.follows
	}
	switch {
	case r.denial != 0:
		p.deny(sh, r.denial)
		return
	case d != nil && d.endShown && head.Records == 0: // behind the end of a shard an iterator is no news
		d.follows = true
		return
	}
	delete(p.doubts, sh.ID)
	if p.inHand(sh.ID) == nil { // else it proves nothing before they are stored
		p.through[sh.ID] = max(p.through[sh.ID], head.Watermark())
	}
}

// beat shows that the owner is alive, and how far the open shards are read.
func (p *process) beat() {
	p.append(&checkpoint.Beat{Date: p.now, Listed: p.listed, Watermark: p.lowest()}, nil)
}

// lowest returns the time up to which every open shard was read that does not stand before a gap.
func (p *process) lowest() (low change.Millis) {
	first := true
	for _, id := range slices.Sorted(maps.Keys(p.s.Shards)) {
		if sh := p.s.Shards[id]; sh.Phase.Reading() && !sh.Loss.Pending {
			if t := max(p.through[id], sh.Watermark); first || t < low {
				low, first = t, false
			}
		}
	}
	return low
}

// mark stores the sink's mark, if it has passed any change since the stored one.
//
// Rule 1: the mark is the end of the contiguous run of entries with durable changes.
func (p *process) mark() {
	m, _ := p.ackedMark()
	if m.Seq > p.s.Seq { // another process appended what the sink has read
		p.doubt = true
		return
	}
	if p.append(&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: m}}, nil) {
		p.marked = append(p.marked, m)
	}
}

// snapshot stores the state, and trims entries that are not needed any more.
func (p *process) snapshot() {
	parts, err := p.s.Snapshot(1 << 20)
	p.must(err)
	if len(parts) != 1 {
		p.must(fmt.Errorf("a snapshot of %d parts", len(parts)))
	}
	if p.append(parts[0].Body, parts[0].Data) {
		p.trim()
	}
}

// trim deletes the entries below the marks and the last snapshot, behind an acknowledged append of
// this fold.
func (p *process) trim() {
	l := p.World.log
	if floor := p.s.TrimBelow(l.first, math.MaxUint64, p.sure); floor > 0 && p.s.Seq == l.last() {
		l.first = floor
	}
}

// readDue reports whether a shard has something to read, or must be read again for a proof.
func (p *process) readDue(sh *checkpoint.Shard) bool {
	read := max(p.through[sh.ID], sh.Watermark)
	if need := p.needed(); read < need && p.now > need+2000 || p.now-read > 20_000 {
		return true
	}
	at := p.find(sh.ID)
	if at == nil || at.closed {
		return true
	}
	pos, _ := p.position(sh)
	n := len(at.records)
	return n > 0 && at.records[n-1].position() > pos.After &&
		(pos.After != "" || at.records[n-1].created >= pos.At-pos.At%1000 && p.now-at.records[n-1].created <= retention)
}

// frame stores the frame that was packed ahead, or else the pages in hand, as one entry. While that
// is under way the next frame may be packed.
//
// Rule 4: what is packed ahead assumes that the entry before it is stored. It ends with the life.
func (p *process) frame() {
	x := p.packed
	switch p.packed = nil; {
	case x == nil:
		x = p.pack(p.pages, p.s.Hash)
	case p.mutant == KeepPacked:
	case p.reachedIf(x.prev != p.s.Hash, packedAgain):
		x = p.pack(p.pages[:x.pages], p.s.Hash)
	default:
		p.reached(packedFollows)
	}
	ahead := false
	fate := func() (fate int) {
		fate, ahead = p.fateOfFrame()
		return fate
	}
	stored := p.appendAs(fate, x.body, x.data, x.msg, func(hash checkpoint.Hash) {
		if ahead {
			p.packAhead(x.pages, hash)
		}
	})
	if stored {
		p.pages = p.pages[x.pages:]
		return
	}
	p.reachedIf(p.packed != nil, packedDropped)
}

// packAhead packs the pages that are in hand behind those under way, after another read.
func (p *process) packAhead(underWay int, prev checkpoint.Hash) {
	for _, sh := range p.readable() {
		if p.readDue(sh) {
			p.readShard(sh, 1)
			break
		}
	}
	if rest := p.pages[underWay:]; len(rest) > 0 {
		p.packed = p.pack(rest, prev)
	}
}

// needed returns the time that a copy or a resync waits to be proved; 0 for none.
func (p *process) needed() (through change.Millis) {
	if p.copy != nil {
		for _, pg := range p.copy.pages {
			if pg.r != nil && !pg.r.begun {
				through = max(through, pg.r.wait.Through)
			}
		}
	}
	if p.follow != nil && p.follow.proof != nil && !p.follow.proof.begun {
		through = max(through, p.follow.proof.wait.Through)
	}
	if p.whole != nil && p.whole.r != nil && !p.whole.r.begun {
		through = max(through, p.whole.r.wait.Through)
	}
	if p.retry != nil && !p.retry.begun {
		through = max(through, p.retry.wait.Through)
	}
	return through
}
