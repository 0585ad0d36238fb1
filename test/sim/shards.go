package sim

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

const (
	retention = 24 * 3600 * 1000 // of a record, in ms
	listLate  = 5000             // how long listings may leave out a new shard
	// streamLate is how long some hosts may not know the shards of a new stream that others have
	// listed.
	streamLate = 30_000
)

// stream is one stream of the table: disabling and enabling makes another.
type stream struct {
	arn      string
	disabled bool
}

// shard is a shard of a stream.
type shard struct {
	id, parent, stream string
	items              []*item
	records            []*record
	closed             bool
	ending             change.SequenceNumber // of a closed one, as listings show it
	born, ended        change.Millis
	visible            change.Millis // when listings begin to show it
}

func (w *World) live() *stream { return w.streams[len(w.streams)-1] }

// enable gives the table a new stream of two shards.
func (w *World) enable() {
	arn := "arn:T/stream/" + w.now.Time().UTC().Format("2006-01-02T15:04:05.000") // as the service names it
	w.streams = append(w.streams, &stream{arn: arn})
	cut := len(w.items)
	if w.o.shards > 1 {
		cut = 1 + w.choose(len(w.items)-1)
	}
	for _, items := range [][]*item{w.items[:cut], w.items[cut:]} {
		if len(items) > 0 {
			w.addShard("", arn, items, 0)
		}
	}
}

func (w *World) disable() {
	w.live().disabled = true
	for _, sh := range w.shards {
		w.end(sh)
	}
}

func (w *World) end(sh *shard) {
	if !sh.closed {
		sh.closed, sh.ended = true, w.now
		sh.ending = (&record{n: len(w.records)}).position() // its last record's, or a higher one
	}
}

func (w *World) addShard(parent, arn string, items []*item, late change.Millis) {
	w.shards = append(w.shards, &shard{
		id: fmt.Sprintf("shard-%d", len(w.shards)+1), parent: parent, stream: arn, items: items, born: w.now,
		visible: w.now + late,
	})
}

// split closes an open shard. Its items go to one child, or to two.
func (w *World) split() {
	var open []*shard
	for _, sh := range w.shards {
		if !sh.closed {
			open = append(open, sh)
		}
	}
	if len(open) == 0 {
		return
	}
	sh := open[w.choose(len(open))]
	w.end(sh)
	late := func() change.Millis { return [...]change.Millis{0, 1500, listLate}[w.weighted(3, 1, 1)] }
	if n := len(sh.items); n > 1 && w.choose(2) == 1 {
		cut := 1 + w.choose(n-1)
		w.addShard(sh.id, sh.stream, sh.items[:cut], late())
		w.addShard(sh.id, sh.stream, sh.items[cut:], late())
	} else {
		w.addShard(sh.id, sh.stream, sh.items, late())
	}
	w.logf("split %s", sh.id)
}

// shardOf returns the open shard of an item; nil while the stream is disabled.
func (w *World) shardOf(x *item) *shard {
	for _, sh := range w.shards {
		if !sh.closed && slices.Contains(sh.items, x) {
			return sh
		}
	}
	return nil
}

// gone reports whether the service has forgotten a shard.
func (w *World) gone(sh *shard) bool { return sh.closed && w.now-sh.ended > retention }

// find returns a shard of the service.
func (w *World) find(id string) *shard {
	for _, sh := range w.shards {
		if sh.id == id && !w.gone(sh) {
			return sh
		}
	}
	return nil
}

// list answers a listing: complete, or only a part of it.
func (w *World) list(arn string, complete bool) *checkpoint.Graph {
	g := &checkpoint.Graph{Stream: arn, Date: w.now, Complete: complete}
	for _, sh := range w.shards {
		if sh.stream != arn || w.gone(sh) || sh.visible > w.now || !complete && w.choose(3) == 1 {
			continue
		}
		seen := checkpoint.ShardSeen{ID: sh.id, Parent: sh.parent}
		seen.Closed = sh.closed && (w.now-sh.ended > 2000 || w.choose(2) == 0)
		if w.mutant == NoParentGate {
			seen.Parent = ""
		}
		g.Shards = append(g.Shards, seen)
	}
	for _, st := range w.streams {
		g.Disabled = g.Disabled || st.arn == arn && st.disabled
	}
	return g
}
