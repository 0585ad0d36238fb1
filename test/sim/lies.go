package sim

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// lie is a negative answer about a shard that is not true, and until when the service gives it.
type lie struct {
	denial protocol.Denial
	until  change.Millis
}

// lieAbout returns the negative answer that is given about a shard although it is not true; 0 for none. A shard that is
// new is denied more often, for the service's hosts hear of it one after the other.
func (w *World) lieAbout(sh *shard) protocol.Denial {
	if l := w.lies[sh.id]; l.until > w.now {
		return l.denial
	}
	if w.now-sh.born < listLate && w.small == nil && w.one(4) {
		w.lies[sh.id] = lie{protocol.NotFound, sh.born + listLate}
		return protocol.NotFound
	}
	denial := protocol.Denial(w.fault(faultDenial, 4))
	if denial != 0 {
		w.lies[sh.id] = lie{denial, w.now + [...]change.Millis{0, 8000, 90_000}[w.weighted(4, 2, 1)]}
		w.reached(lied)
	}
	return denial
}

// reply is what GetRecords answers.
type reply struct {
	records []*record
	denial  protocol.Denial // 0: more may follow
}

// read answers GetRecords. What was trimmed at the trim horizon is not reported, as the service does not.
func (w *World) read(sh *shard, pos change.Position, limit int) (r reply) {
	if sh == nil {
		return reply{denial: protocol.NotFound}
	}
	if r.denial = w.lieAbout(sh); r.denial == protocol.NotFound || r.denial == protocol.Trimmed {
		return r
	}
	for _, rec := range sh.records {
		switch {
		case pos.After != "" && rec.position() <= pos.After, pos.After == "" && rec.created < pos.At-pos.At%1000:
			continue
		case w.now-rec.created > retention:
			if pos.After != "" {
				return reply{denial: protocol.Trimmed}
			}
			continue
		case len(r.records) == limit:
			return r
		}
		r.records = append(r.records, rec)
	}
	if sh.closed && (len(r.records) > 0 || w.choose(3) < 2) {
		r.denial = protocol.NoIterator
	}
	return r
}

// horizon answers a read from the trim horizon of a shard.
func (p *process) horizon(sh *checkpoint.Shard) (h protocol.Horizon) {
	at := p.find(sh.ID)
	if at == nil || p.lieAbout(at) == protocol.NotFound {
		return protocol.Horizon{Nothing: true}
	}
	for _, r := range at.records {
		if p.now-r.created <= retention {
			return protocol.Horizon{First: r.position()}
		}
	}
	return h
}

// describe answers DescribeStream: a listing, and what it shows of the stream; nil if it fails. It may show a stream
// that is off or unknown while it takes records, and may lack shards that are new.
func (w *World) describe(arn string) (*checkpoint.Graph, protocol.StreamShown) {
	g, shows := w.list(arn, true), protocol.StreamTakes
	switch {
	case len(g.Shards) == 0:
		shows = protocol.StreamUnknown
	case g.Disabled:
		shows = protocol.StreamOff
	}
	lie := w.fault(faultListing, 5)
	if lie == 0 && w.deniesNew() && w.one(2) {
		lie = 4
	}
	switch lie {
	case 1:
		return nil, protocol.StreamUnclear
	case 2:
		g.Shards, shows = nil, protocol.StreamUnknown
	case 3:
		shows = protocol.StreamOff
	case 4:
		var older []checkpoint.ShardSeen
		for _, x := range g.Shards {
			if w.now-w.shard(x.ID).born >= listLate {
				older = append(older, x)
			}
		}
		if len(older) > 0 {
			g.Shards = older
		}
	}
	return g, shows
}

// deniesNew reports whether the service denies a shard that is new.
func (w *World) deniesNew() bool {
	for _, sh := range w.shards {
		if w.now-sh.born < listLate && w.lies[sh.id].until > w.now {
			return true
		}
	}
	return false
}

// table answers DescribeTable, about a stream of which the stream itself showed something. When that was not true, the
// same may be answered again.
func (w *World) table(arn string, shown protocol.StreamShown) protocol.StreamShown {
	switch live := w.live(); {
	case live.arn != arn:
		return protocol.StreamReplaced
	case live.disabled:
		return protocol.StreamOff
	case shown == protocol.StreamOff && w.small == nil && w.one(4):
		w.falseEnd = true
		return protocol.StreamOff
	}
	return protocol.StreamTakes
}

// shard returns a shard, also one that the service has forgotten; nil for none.
func (w *World) shard(id string) *shard {
	for _, sh := range w.shards {
		if sh.id == id {
			return sh
		}
	}
	return nil
}
