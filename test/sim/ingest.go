package sim

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/checkpoint/listing"
	"github.com/tailrace-cdc/replicator/protocol"
)

const (
	startBefore = 5 * 60 * 1000 // how far before the first start the stream is read beside a backfill
	firstPage   = 2000          // how long after the first listing the copy reads its first page
)

// page is a page in hand: read, not stored.
type page struct {
	head    checkpoint.PageHead
	records []stored
}

// start stores where the shards of a stream start: the first one of a log, or a new one after the old one has ended.
func (p *process) start() {
	live := p.s.LiveStream()
	g := p.list(p.live().arn, true)
	if len(g.Shards) == 0 {
		return
	}
	b := &checkpoint.Start{Stream: g.Stream, Date: g.Date, Shards: g.Shards}
	switch {
	case live != nil:
		gap := &checkpoint.Gap{
			Feed: change.Feed{Stream: live.ARN}, Since: p.s.ReadWatermark(), Until: g.Date, Found: g.Date, Ends: true,
			Reason: "the stream was replaced",
		}
		p.described = p.now
		if p.lostBetween(gap) && !p.append(gap, nil) {
			return
		}
		if p.one(2) { // something fails in between, and a later life goes on
			p.doubt = true
			return
		}
	case p.adopted:
		b.Floor, b.Backfill, b.At = p.floor, checkpoint.FromScan, g.Date-startBefore
	case p.lives > 0:
		b.Floor, b.Recover, b.After, b.At = p.floor, true, g.Date, g.Date-startBefore
		if p.mutant == NoFloor {
			b.Floor, b.After = 0, 0
		}
	case p.o.backfill:
		b.Backfill, b.At = checkpoint.FromScan, g.Date-startBefore
	}
	p.append(b, nil)
}

// lostBetween reports whether the gap between two streams must be stored.
func (p *process) lostBetween(g *checkpoint.Gap) bool {
	if p.mutant == OneGapBetween {
		return !slices.ContainsFunc(p.s.Gaps, func(o checkpoint.Gap) bool { return o.Feed == g.Feed })
	}
	return p.s.LostBetween(g)
}

// stillLive reports whether the stream that the log reads is the table's.
func (p *process) stillLive() bool { return p.s.LiveStream().ARN == p.live().arn }

// refresh lists the shards and stores what is new.
func (p *process) refresh(complete bool) {
	live := p.s.LiveStream()
	g := p.list(live.ARN, complete)
	g.Disabled = g.Disabled && (live.Disabled || p.streamEnded(len(g.Shards) == 0))
	g.Enabled = !g.Disabled && live.Disabled
	switch {
	case len(g.Shards) == 0 && g.Disabled: // the stream is gone: readers report that of their shards
		g.Complete, g.Gone = false, p.s.GappedShards()
		if p.mutant != ForgetParents {
			g.Gone = append(g.Gone, p.s.MissingParents()...)
		}
	case complete:
		for _, id := range p.s.MissingParents() {
			if p.find(id) == nil {
				g.Gone = append(g.Gone, id)
			}
		}
	}
	for _, part := range listing.Diff(p.s, g, listing.PartBytes) {
		if !p.append(part, nil) {
			return
		}
	}
	if p.looked = p.now; g.Complete {
		p.listed = g.Date
	}
	p.ended = p.ended && p.s.AwaitsChildren()
}

// streamEnded asks the table after the stream has answered that it is off, or is unknown.
func (p *process) streamEnded(unknown bool) bool {
	at := time.UnixMilli(int64(p.now))
	stream := protocol.StreamAnswer{By: protocol.DescribesStream, Shows: protocol.StreamOff, Asked: at, Answered: at}
	table := protocol.StreamAnswer{By: protocol.DescribesTable, Shows: protocol.StreamTakes, Asked: at, Answered: at}
	if unknown {
		stream.Shows = protocol.StreamUnknown
	}
	switch live := p.live(); {
	case !p.stillLive():
		table.Shows = protocol.StreamReplaced
	case live.disabled:
		table.Shows = protocol.StreamOff
	}
	return protocol.StreamEnded(stream, table)
}

// readable returns the shards that may be read, sorted, less those whose end is in hand.
func (p *process) readable() (all []*checkpoint.Shard) {
	for _, id := range slices.Sorted(maps.Keys(p.s.Shards)) {
		if sh := p.s.Shards[id]; p.s.Readable(sh) {
			if pg := p.inHand(id); pg == nil || !pg.head.Done {
				all = append(all, sh)
			}
		}
	}
	return all
}

// inHand returns the newest page in hand of a shard.
func (p *process) inHand(id string) *page {
	for i := len(p.pages) - 1; i >= 0; i-- {
		if p.pages[i].head.Feed.Shard == id {
			return &p.pages[i]
		}
	}
	return nil
}

// readShard reads a page of a shard, behind the pages in hand or behind what is stored.
func (p *process) readShard(sh *checkpoint.Shard, limit int) {
	pos, clock := sh.Pos, change.Clock(sh.Clock)
	if pg := p.inHand(sh.ID); pg != nil {
		pos, clock = pg.head.To, change.Clock(pg.head.Clock)
	}
	feed := change.Feed{Stream: sh.Stream, Shard: sh.ID}
	gap := &checkpoint.Gap{
		Feed: feed, From: pos, Since: sh.Watermark, Until: p.now, Found: p.now, Reason: "records were trimmed",
	}
	at := p.find(sh.ID)
	if at == nil {
		gap.Ends = true
		p.storeGap(gap)
		return
	}
	r := p.read(at, pos, limit)
	p.logf("%s reads %s: %d records, trimmed %v, done %v", p.name, sh.ID, len(r.records), r.trimmed, r.done)
	if since := p.s.CompleteUntil(sh); r.trimmed || pos.After == "" && since > 0 && p.now-since > retention {
		gap.Since = max(since, gap.Since)
		p.storeGap(gap)
		return
	}
	p.receive(sh, at, r, checkpoint.PageHead{
		Feed: feed, From: pos, To: pos, ClockFrom: change.Version(clock), Done: r.done, Date: p.now, Records: len(r.records),
	})
}

// receive gives the records of a page their versions, and keeps the page; an empty one only says how far was read.
//
// Rule 5: versions are assigned once, by the clock of the shard.
func (p *process) receive(sh *checkpoint.Shard, at *shard, r reply, head checkpoint.PageHead) {
	clock, pg, of := change.Clock(head.ClockFrom), page{}, p.s.LifeOf(sh.Stream)
	for i, rec := range r.records {
		v := clock.NextIn(of, rec.created)
		clock += change.Clock(rec.ahead)
		v += rec.ahead
		pg.records = append(pg.records, stored{rec, v})
		head.To, head.Newest = change.Position{After: rec.position()}, rec.created
		if i == 0 {
			head.Oldest = rec.created
		}
		p.issue(v)
	}
	if head.Clock = change.Version(clock); head.Records > 0 || head.Done {
		pg.head = head
		p.pages = append(p.pages, pg)
		p.ended = p.ended || head.Done
		return
	}
	if p.inHand(at.id) == nil { // else it proves nothing before they are stored
		p.through[sh.ID] = max(p.through[sh.ID], head.Watermark())
	}
}

// storeGap stores a gap, unless it is known by now.
func (p *process) storeGap(g *checkpoint.Gap) {
	if len(p.pages) > 0 {
		p.frame() // the gap goes behind the pages of its shard
		return
	}
	sh := p.s.Shards[g.Feed.Shard]
	if sh != nil && (sh.Phase.Finished() || sh.Loss.Pending) {
		return
	}
	if g.Ends && (p.s.LostBeforeStart(sh, g.Found) || p.mutant == WideExcuse) {
		g.Accepted, g.Reason = true, checkpoint.ReasonBeforeStart
	}
	p.append(g, nil)
	p.ended = true
}

// frame stores the pages in hand as one entry.
func (p *process) frame() {
	f, data := &checkpoint.Frame{}, []byte(nil)
	for _, pg := range p.pages {
		f.Pages = append(f.Pages, pg.head)
		for _, r := range pg.records {
			data = binary.AppendUvarint(binary.AppendUvarint(data, uint64(r.record.n)), uint64(r.version))
		}
	}
	if p.append(f, data) {
		p.pages = nil
	}
}

// beat shows that the owner is alive, and how far the open shards are read.
func (p *process) beat() {
	p.append(&checkpoint.Beat{Date: p.now, Listed: p.listed, Watermark: p.lowest()}, nil)
}

// lowest returns the time up to which every open shard was read.
func (p *process) lowest() (low change.Millis) {
	first := true
	for _, id := range slices.Sorted(maps.Keys(p.s.Shards)) {
		if sh := p.s.Shards[id]; sh.Phase.Reading() {
			if t := max(p.through[id], sh.Watermark); first || t < low {
				low, first = t, false
			}
		}
	}
	return low
}

// mark stores the sink's mark, if it has passed any change since the stored one.
//
// Rule 1: the mark is the end of the contiguous run of entries whose changes are durable.
func (p *process) mark() {
	m, _ := p.ackedMark()
	if m.Seq > p.s.Seq { // another process appended what the sink has read
		p.doubt = true
		return
	}
	p.append(&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: m}}, nil)
}

// snapshot stores the state, and trims what nobody needs any more.
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

// trim deletes the entries below the marks and the last snapshot, behind an acknowledged append of this fold.
func (p *process) trim() {
	floor := min(p.s.LowMark()+1, p.s.SnapshotFirst)
	if l := p.World.log; floor > l.first && floor < p.sure && p.s.Seq == l.last() {
		l.first = floor
	}
}
