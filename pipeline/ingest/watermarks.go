package ingest

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// watermarks hold how far empty reads of open shards reach. Only the write loop uses them, and only after everything
// that was read before is in the log.
type watermarks struct {
	byShard map[string]*watermark
	all     []*watermark
}

type watermark struct {
	shard *checkpoint.Shard
	at    change.Millis
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

// raise notes what an empty page proves about its shard.
func (w *watermarks) raise(p *change.Page) {
	if m := w.byShard[p.Feed.Shard]; m != nil {
		head := checkpoint.PageHead{Date: p.Date}
		m.at = max(m.at, head.Watermark())
	}
}

// lowest returns the time up to which every open shard has been read, 0 while one has not been read at all. It drops
// the shards that are read to their end.
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
		if t := max(m.at, m.shard.Watermark); first || t < low {
			low, first = t, false
		}
	}
	clear(w.all[len(open):])
	w.all = open
	return low
}
