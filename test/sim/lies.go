package sim

import (
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// lie is a negative answer about a shard that is not true, and when the service gives it.
type lie struct {
	denial      protocol.Denial
	from, until change.Millis
	empty       bool // for NoIterator: the page has no record either
}

// patience is protocol.Patience in the time of histories.
const patience = change.Millis(protocol.Patience / time.Millisecond)

// lasts reports whether the answer is given for so long that it may be believed.
func (l lie) lasts() bool { return l.until-l.from >= patience }

// lieAbout returns the negative answer that is given about a shard although it is not true; 0 for
// none. A shard that is new is denied more often, for the service's hosts hear of it one after the
// other.
func (w *World) lieAbout(sh *shard) protocol.Denial {
	if l := w.lies[sh.id]; l.until > w.now {
		return l.denial
	}
	if w.isNew(sh) && w.small == nil && w.one(4) {
		until := max(sh.born+listLate, min(w.now+3000, sh.born+streamLate))
		w.lies[sh.id] = lie{denial: protocol.NotFound, from: w.now, until: until}
		return protocol.NotFound
	}
	denial := protocol.Denial(w.fault(faultDenial, 4))
	if denial == 0 || denial != protocol.NotFound && w.now-w.lies[sh.id].until < patience {
		return 0 // two in a row would be one that lasts
	}
	l := lie{denial: denial, from: w.now, until: w.now + [...]change.Millis{0, 8000, 90_000}[w.weighted(4, 2, 1)]}
	l.empty = denial == protocol.NoIterator && w.choose(2) == 1
	w.lies[sh.id] = l
	w.reached(lied)
	return denial
}

// reply is what GetRecords answers.
type reply struct {
	records []*record
	denial  protocol.Denial // 0: more may follow
	held    bool            // the read began at the last record, and the page holds it alone
}

// read answers GetRecords, of an iterator behind a position, or at it. What was trimmed at the trim
// horizon is not reported, as the service does not.
func (w *World) read(sh *shard, pos change.Position, limit int, at bool) (r reply) {
	if sh == nil {
		return reply{denial: protocol.NotFound}
	}
	r.denial = w.lieAbout(sh)
	if r.denial == protocol.NoIterator && pos.After == "" && w.lies[sh.id].lasts() {
		r.denial = 0 // that nothing follows where nothing was read is true if it lasts
	}
	switch {
	case r.denial == protocol.NotFound, r.denial == protocol.Trimmed, r.denial != 0 && w.lies[sh.id].empty:
		return r
	case at:
		return w.readAt(sh, pos, limit, r)
	}
	return w.readBehind(sh, pos, limit, r)
}

// readAt reads from the record at a position, which the page leaves out. A page holds more than one
// record, if there are more.
func (w *World) readAt(sh *shard, pos change.Position, limit int, r reply) reply {
	i := slices.IndexFunc(sh.records, func(rec *record) bool { return rec.position() == pos.After })
	if i < 0 || w.now-sh.records[i].created > retention {
		return reply{denial: protocol.Trimmed}
	}
	r = w.readBehind(sh, pos, limit, r)
	r.held = len(r.records) == 0
	return r
}

// readBehind reads what follows a position.
func (w *World) readBehind(sh *shard, pos change.Position, limit int, r reply) reply {
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

// describe answers DescribeStream: a listing, and what it shows of the stream; nil if it fails. It
// may show a stream that is off or unknown while it takes records, and may lack shards that are
// new.
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
			if !w.isNew(w.shard(x.ID)) {
				older = append(older, x)
			}
		}
		if len(older) > 0 {
			g.Shards = older
		}
	}
	return g, shows
}

// isNew reports whether hosts of the service may not have a shard yet, even where others have
// listed it. Shards of a new stream take longer.
func (w *World) isNew(sh *shard) bool {
	_, known := w.log.truth.Shards[sh.id]
	return w.now-sh.born < listLate || w.now-sh.born < streamLate && sh.parent == "" && known
}

// deniesNew reports whether the service denies a shard that is new.
func (w *World) deniesNew() bool {
	for _, sh := range w.shards {
		if w.isNew(sh) && w.lies[sh.id].until > w.now {
			return true
		}
	}
	return false
}

// table answers DescribeTable, about a stream of which the stream itself showed something. When
// that was not true, the same may be answered again.
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
