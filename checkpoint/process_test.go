package checkpoint

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// process is one instance of the daemon. It knows what it folded when it claimed the log and what
// it appended since; it may be stopped at any point, die, or go on long after another process has
// claimed the log.
type process struct {
	*testing.T
	w     *world
	l     *memLog
	name  byte
	wr    *writer // nil: not an owner, as far as it knows
	pages []simPage
	// through is how far empty reads reach, listed when the last complete listing began.
	through map[string]change.Millis
	listed  change.Millis
	applied uint64 // the sink is done up to here

	page     *copyPage // in hand
	copied   map[int]CopyMark
	copiedID string // of the copy
	whole    *resyncing
	healed   *Healed // not stored yet
}

// forget drops what the process has in hand, except for what it knows of the table: it goes on with
// a resync.
func (p *process) forget() {
	p.pages, p.through, p.page, p.copied, p.copiedID = nil, map[string]change.Millis{}, nil, nil, ""
}

// simPage is a page in hand: read, not stored.
type simPage struct {
	head PageHead
	recs []simRec
}

// simRec is a record as the log holds it.
type simRec struct {
	Shard   string
	N, Item int
	Version change.Version
	Created change.Millis
}

// recsOf returns the records of a frame.
func recsOf(t testing.TB, e *Entry) (recs []simRec) {
	t.Helper()
	if err := json.Unmarshal(e.Data, &recs); err != nil {
		t.Fatal(err)
	}
	return recs
}

// took looks at what an append said. In doubt the process throws its memory away (Rule 4): it may
// go on only if what is stored says that the log is still its own.
func (p *process) took(err error) bool {
	p.Helper()
	switch {
	case err == nil:
		return true
	case errors.Is(err, errStale):
		p.forget()
		return false
	case !errors.Is(err, errWrongLast):
		p.Fatal(err)
	}
	s := p.l.restored(p)
	p.forget()
	if s.Epoch != p.wr.epoch || s.Nonce != p.wr.nonce || s.Released {
		p.wr = nil
		return false
	}
	p.wr.s, p.applied, p.listed = s, s.Marks[SinkBigtable].Seq, s.Listed
	return false
}

func (p *process) append(body any, data []byte) bool { return p.took(p.wr.append(p, body, data)) }

// claim takes the log over, rightly or not: no fence but the log itself keeps the old owner away.
func (p *process) claim() {
	s := p.l.restored(p)
	p.forget()
	p.listed, p.whole, p.healed = s.Listed, nil, nil
	wr, err := claim(p, p.l, s, string(p.name), p.name)
	if err != nil {
		p.Fatal(err)
	}
	p.wr, p.applied = wr, s.Marks[SinkBigtable].Seq
	if _, ok := s.Marks[SinkBigtable]; !ok {
		p.append(&Marks{Sinks: map[string]Mark{SinkBigtable: {}}}, nil)
	}
}

// list starts a stream, or appends what is new in its listing.
func (p *process) list(complete bool) {
	s := p.wr.s
	live := s.LiveStream()
	next := p.w.streams[len(s.Streams):]
	if live == nil {
		next = p.w.streams[len(p.w.streams)-1:] // the ones before were over
	}
	if (live == nil || s.Drained(live.ARN)) && len(next) > 0 {
		g := p.w.list(next[len(next)-1].arn, true)
		if live != nil && !p.append(&Gap{Feed: change.Feed{Stream: live.ARN}, Since: s.ReadWatermark(), Until: g.Date,
			Found: g.Date, Ends: true}, nil) {
			return
		}
		start := p.start(g, live == nil)
		for _, part := range SplitStart(start, 1+p.w.IntN(400)) {
			if p.w.IntN(8) == 0 || !p.append(part, nil) {
				return // it gives up in between
			}
		}
		return
	}
	if live == nil {
		return
	}
	g := p.w.list(live.ARN, complete)
	if complete {
		for _, id := range s.MissingParents() {
			if p.w.find(id) == nil {
				g.Gone = append(g.Gone, id)
			}
		}
		if len(g.Shards) == 0 && g.Disabled { // the stream itself is gone
			for id, sh := range s.Shards {
				if !sh.Phase.Finished() {
					g.Gone = append(g.Gone, id)
				}
			}
		}
	}
	for _, part := range DiffListing(s, g, 1+p.w.IntN(400)) {
		if !p.append(part, nil) {
			return
		}
	}
	if complete {
		p.listed = g.Date
	}
}

// start returns the start of a stream: the first of a pipeline, of a life after a lost log, or a
// later one.
func (p *process) start(g *Graph, first bool) *Start {
	b := &Start{Stream: g.Stream, Date: g.Date, Shards: g.Shards}
	if !first {
		return b
	}
	const before = 5 * 60 * 1000
	switch {
	case p.l.floor > 0:
		b.Floor, b.Recover, b.After = p.l.floor, true, g.Date
		if !p.l.horizon {
			b.At = g.Date - before
		}
	case p.w.IntN(4) > 0:
		b.Backfill = []string{FromScan, FromScan, FromExport}[p.w.IntN(3)]
		if p.w.IntN(2) == 0 {
			b.At = g.Date - before
		}
	case p.w.IntN(2) == 0:
		b.At = g.Date
	}
	return b
}

// readable picks a shard that may be read.
func (p *process) readable() *Shard {
	var fit []*Shard
	for _, sh := range p.wr.s.Shards {
		if p.wr.s.Readable(sh) {
			fit = append(fit, sh)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	low := fit[0] // the map has no order of its own, a seed must give one history
	for _, sh := range fit {
		if key(sh.ID, p.w.now) < key(low.ID, p.w.now) {
			low = sh
		}
	}
	return low
}

func key(id string, salt change.Millis) string {
	h := HashOf([]byte{id[len(id)-1], id[len(id)-2], byte(salt), byte(salt >> 8)})
	return string(h[:]) + id
}

// read reads on in some shard: behind the pages in hand, or behind what is stored.
func (p *process) read() {
	if sh := p.readable(); sh != nil {
		p.readShard(sh)
	}
}

func (p *process) readShard(sh *Shard) {
	pos, clock := sh.Pos, change.Clock(sh.Clock)
	for _, pg := range p.pages {
		if pg.head.Feed.Shard == sh.ID {
			if pg.head.Done {
				return
			}
			pos, clock = pg.head.To, change.Clock(pg.head.Clock)
		}
	}
	feed := change.Feed{Stream: sh.Stream, Shard: sh.ID}
	gap := &Gap{Feed: feed, From: pos, Since: sh.Watermark, Until: p.w.now, Found: p.w.now}
	at := p.w.find(sh.ID)
	if at == nil {
		gap.Ends = true
		p.append(gap, nil)
		return
	}
	recs, trimmed, done := p.w.read(at, pos.After, pos.At, 1+p.w.IntN(4))
	if since := p.wr.s.CompleteUntil(sh); trimmed || pos.After == "" && since > 0 && p.w.now-since > retention {
		gap.Since = max(since, gap.Since)
		p.append(gap, nil)
		return
	}
	head := PageHead{Feed: feed, From: pos, To: pos, ClockFrom: change.Version(clock), Done: done, Date: p.w.now,
		Records: len(recs)}
	page, life := simPage{}, p.wr.s.LifeOf(sh.Stream)
	for i, r := range recs {
		page.recs = append(page.recs, simRec{sh.ID, r.N, r.Item, clock.NextIn(life, r.Created), r.Created})
		p.w.target.issued = max(p.w.target.issued, change.Version(clock))
		head.To, head.Newest = change.Position{After: sequenceNumber(r.N)}, r.Created
		if i == 0 {
			head.Oldest = r.Created
		}
	}
	if head.Clock = change.Version(clock); len(recs) > 0 || done {
		page.head = head
		p.pages = append(p.pages, page)
		return
	}
	for _, pg := range p.pages {
		if pg.head.Feed.Shard == sh.ID {
			return // proves nothing before they are stored
		}
	}
	p.through[sh.ID] = max(p.through[sh.ID], head.Watermark())
}

// frame stores the pages in hand.
func (p *process) frame() {
	if len(p.pages) == 0 {
		return
	}
	f, all := &Frame{}, []simRec{}
	for _, pg := range p.pages {
		f.Pages = append(f.Pages, pg.head)
		all = append(all, pg.recs...)
	}
	data, _ := json.Marshal(all)
	if p.append(f, data) {
		p.pages = nil
	}
}

func (p *process) beat() {
	low, any := change.Millis(0), false
	for _, sh := range p.wr.s.Shards {
		if sh.Phase.Reading() && !sh.Loss.Pending {
			if t := max(p.through[sh.ID], sh.Watermark); !any || t < low {
				low, any = t, true
			}
		}
	}
	p.append(&Beat{Date: p.w.now, Listed: p.listed, Watermark: low, Invented: p.wr.s.InventedMember()}, nil)
}

// mark lets the sink go on, to any entry between where it is and the end.
func (p *process) mark() {
	s := p.wr.s
	from, to := max(p.applied, s.Marks[SinkBigtable].Seq), s.Seq
	if s.Fence != nil {
		to = max(s.Fence.Seq, from)
	}
	p.markUpTo(from + p.w.Uint64N(to-from+1))
}

// markUpTo lets the sink write what the log holds up to an entry, and stores its mark.
func (p *process) markUpTo(seq uint64) {
	p.apply(seq)
	if p.applied = seq; p.w.IntN(8) > 0 {
		p.append(&Marks{Sinks: map[string]Mark{SinkBigtable: {Seq: p.applied}}}, nil)
	}
}

// resume is what an operator does: any process may append a control entry.
func (p *process) resume() {
	wr := &writer{l: p.l, s: p.l.restored(p)}
	wr.must(p, &Control{Resume: true, By: "operator"})
	for i := range wr.s.Gaps {
		g := &wr.s.Gaps[i]
		if sinks := wr.s.DifferingSinks(g); len(sinks) > 0 {
			wr.must(p, &Control{Waive: &Waive{Gap: g.ID(), Sink: sinks[0]}, By: "operator"})
			return
		}
	}
}

// halt stops a sink or the pipeline itself, or lets it go on.
func (p *process) halt() {
	sink := []string{SinkBigtable, "archive", "pipeline"}[p.w.IntN(3)]
	if c := p.wr.s.ClearEntry(sink); c != nil {
		p.append(c, nil)
		return
	}
	p.append(&Control{Halt: &Halt{Sink: sink, Seq: p.wr.s.Seq, Code: "x", Reason: "x"}}, nil)
}

func (p *process) release() {
	if p.append(&Release{To: string("abc"[p.w.IntN(3)])}, nil) {
		p.wr = nil
	}
}
