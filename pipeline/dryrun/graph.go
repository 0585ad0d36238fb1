package dryrun

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source"
)

// phase is how far a shard is.
type phase int

const (
	waiting phase = iota // for its parent
	reading
	ended
)

// graph is the shards of a stream. A child is read after its parent, as a run does, so that the
// clock of the page that is read last shows how far the table is.
type graph struct {
	shards map[string]*node
}

type node struct {
	source.Shard
	phase phase
}

// begin returns the shards to read first. From the trim horizon these are all without a listed
// parent; else the open ones, and what has ended before is left out.
func (g *graph) begin(l source.Listing, horizon bool) (ready []source.Shard) {
	g.shards = map[string]*node{}
	for _, s := range l.Shards {
		n := &node{Shard: s}
		if !horizon {
			if n.phase = ended; !s.Closed {
				n.phase, ready = reading, append(ready, s)
			}
		}
		g.shards[s.ID] = n
	}
	if horizon {
		return g.ready()
	}
	return ready
}

// add takes shards that were listed later, and returns those that may be read now.
func (g *graph) add(shards []source.Shard) []source.Shard {
	for _, s := range shards {
		if g.shards[s.ID] == nil {
			g.shards[s.ID] = &node{Shard: s}
		}
	}
	return g.ready()
}

// end notes that a shard is read to its end, and returns those that may be read now.
func (g *graph) end(shard string) []source.Shard {
	if n := g.shards[shard]; n != nil {
		n.phase = ended
	}
	return g.ready()
}

// ready moves the waiting shards with a parent that is ended, or not known, to reading.
func (g *graph) ready() (all []source.Shard) {
	for _, n := range g.shards {
		if n.phase != waiting {
			continue
		}
		if parent := g.shards[n.Parent]; parent == nil || parent.phase == ended {
			n.phase = reading
			all = append(all, n.Shard)
		}
	}
	return all
}

// count returns how many shards are read, and how many wait for their parent.
func (g *graph) count() (now, later int) {
	for _, n := range g.shards {
		switch n.phase {
		case reading:
			now++
		case waiting:
			later++
		}
	}
	return now, later
}

// startOf returns where the reading of a shard begins: a zero time is the trim horizon.
func startOf(t *Table, s source.Shard, at change.Millis) source.Start {
	return source.Start{
		Feed: change.Feed{Stream: t.Info.StreamARN, Shard: s.ID}, Table: t.Source, Schema: t.Info.Schema,
		Position: change.Position{At: at}, Closed: s.Closed,
	}
}
