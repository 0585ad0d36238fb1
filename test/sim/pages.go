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
