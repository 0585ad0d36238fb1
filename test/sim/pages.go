package sim

import (
	"encoding/binary"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// page is a page in hand: read, not stored.
type page struct {
	head    checkpoint.PageHead
	records []stored
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

// position returns where the reading of a shard continues: behind the pages in hand, or behind what
// is stored.
func (p *process) position(sh *checkpoint.Shard) (change.Position, change.Version) {
	if pg := p.inHand(sh.ID); pg != nil {
		return pg.head.To, pg.head.Clock
	}
	return sh.Pos, sh.Clock
}

// packed is a frame of the oldest pages in hand, encoded.
type packed struct {
	pages int
	body  *checkpoint.Frame
	data  []byte
	prev  checkpoint.Hash // of the entry that it names as its predecessor
	msg   []byte
}

// pack packs pages in hand behind the entry with a hash.
func (p *process) pack(pages []page, prev checkpoint.Hash) *packed {
	x := &packed{pages: len(pages), body: &checkpoint.Frame{}, prev: prev}
	for _, pg := range pages {
		x.body.Pages = append(x.body.Pages, pg.head)
		for _, r := range pg.records {
			x.data = binary.AppendUvarint(binary.AppendUvarint(x.data, uint64(r.record.n)), uint64(r.version))
		}
	}
	x.msg = p.encode(prev, p.epoch, p.nonce, x.body, x.data)
	return x
}

// fateOfFrame is fateOfAppend, and draws whether the next frame is packed meanwhile. The enumeration
// leaves that out.
func (w *World) fateOfFrame() (fate int, ahead bool) {
	if w.small != nil {
		return w.fateOfAppend(), false
	}
	n := w.faultOf(faultAppend, 4, 2)
	return n % 4, n >= 4
}

// storeGap stores a gap, unless it is known by now.
func (p *process) storeGap(g *checkpoint.Gap) {
	if len(p.pages) > 0 {
		p.frame() // the gap goes behind the pages of its shard
		return
	}
	if !p.s.PrepareGap(g) {
		return
	}
	if g.Ends && p.mutant == WideExcuse {
		g.Accepted, g.Reason = true, checkpoint.ReasonBeforeStart
	}
	p.reachedIf(g.BeforeStart(), gapExcused)
	if p.append(g, nil) {
		delete(p.doubts, g.Feed.Shard)
	}
	p.ended = true
}
