package ingest

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// watermarks hold how far empty reads of open shards reach. Only the write loop uses them, and only
// after everything that was read before is in the log.
type watermarks struct {
	byShard map[string]*watermark
	all     []*watermark

	awaited change.Millis // as given to reached
	passed  int           // the first ones of all have reached it
}

type watermark struct {
	shard *checkpoint.Shard
	at    change.Millis
	// proven is what its records and heartbeats prove, without any empty read. It is of this life
	// only.
	proven change.Millis
}

func newWatermarks() *watermarks { return &watermarks{byShard: map[string]*watermark{}} }

// add begins to track a shard once it is open.
func (w *watermarks) add(sh *checkpoint.Shard) {
	if m := w.byShard[sh.ID]; !sh.Phase.Reading() || m != nil && m.shard == sh {
		return
	}
	m := &watermark{shard: sh}
	w.byShard[sh.ID] = m
	w.all = append(w.all, m)
}

// raise notes what a page without records shows about its shard. A page of heartbeats is not empty,
// so more may follow it, and it shows nothing beyond them.
func (w *watermarks) raise(p *change.Page) {
	if m := w.byShard[p.Feed.Shard]; m != nil {
		newest := p.Newest()
		head := checkpoint.PageHead{Date: p.Date, Newest: newest}
		if newest > 0 {
			head.Records = 1
		}
		m.at = max(m.at, head.Watermark())
	}
}

// prove notes when the newest record or heartbeat was created that has come out of a shard.
func (w *watermarks) prove(shard string, newest change.Millis) {
	if m := w.byShard[shard]; m != nil {
		head := checkpoint.PageHead{Records: 1, Newest: newest}
		m.proven = max(m.proven, head.Watermark())
	}
}

// proof returns the time up to which records and heartbeats prove that everything was read: the
// records of a shard are in order, and a shard that took a write had not ended before. It is 0
// while nothing has come out of some shard. open are the shards that take writes, assumed is the
// number of those out of which nothing has come that is recent.
func (w *watermarks) proof(recent change.Millis) (proven change.Millis, open []string, assumed int) {
	for i, m := range w.all {
		if i == 0 || m.proven < proven {
			proven = m.proven
		}
		if m.shard.Phase.Closed() {
			continue
		}
		if open = append(open, m.shard.ID); m.proven < recent {
			assumed++
		}
	}
	return proven, open, assumed
}

// reached reports whether every open shard has been read up to a time, as lowest does, without a
// look at all shards each time: it is asked after each page, with the same time or a later one.
func (w *watermarks) reached(through change.Millis) bool {
	if w.awaited != through {
		w.awaited, w.passed = through, 0
	}
	for ; w.passed < len(w.all); w.passed++ {
		m := w.all[w.passed]
		if m.shard.Phase.Reading() && !m.shard.Loss.Pending && max(m.at, m.shard.Watermark) < through {
			return false
		}
	}
	return true
}

// lowest returns the time up to which every open shard has been read, 0 while one has not been read
// at all. It leaves out the shards that stand before a gap: they are not read, and how far the
// others are must still reach the log. It drops the shards that are read to their end.
func (w *watermarks) lowest() change.Millis {
	var low change.Millis
	first, open := true, w.all[:0]
	for _, m := range w.all {
		if !m.shard.Phase.Reading() {
			if w.byShard[m.shard.ID] == m {
				delete(w.byShard, m.shard.ID)
			}
			continue
		}
		open = append(open, m)
		if m.shard.Loss.Pending {
			continue
		}
		if t := max(m.at, m.shard.Watermark); first || t < low {
			low, first = t, false
		}
	}
	clear(w.all[len(open):])
	w.all, w.passed = open, 0
	return low
}
