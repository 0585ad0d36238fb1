package ledger

import (
	"maps"

	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// Verdict is what becomes of a deletion.
type Verdict byte

// The verdicts.
const (
	Keep   Verdict = iota // it is archived
	Skip                  // the mapping does not archive it
	Letter                // it is a dead letter of the archive
	Late                  // it was one, and is archived now
	Known                 // an object or the stream has it under this id, though the state may have forgotten that
)

// Record is a deletion in the order of its shard. Of one that is not kept only the class, the
// record's place and the time are needed.
type Record struct {
	*transform.Event
	Verdict Verdict
}

// Batch collects the records of one Events entry. It belongs to the state that made it: nothing may
// be applied to that between NewBatch and the entry.
type Batch struct {
	state  *State
	now    layout.Hour
	body   Events
	groups map[PartKey]*openGroup
	size   int
}

type openGroup struct {
	Group
	raw []byte
}

// NewBatch returns an empty batch, of records that are copied in an hour.
func (s *State) NewBatch(now layout.Hour) *Batch {
	return &Batch{state: s, now: now, groups: map[PartKey]*openGroup{}, body: Events{
		Shards: map[string]Shard{}, Counts: map[layout.Hour]Counts{},
	}}
}

// Add takes a record, unless it is known already. A record of a shard is known when one behind it
// is: the table's log, and each log after it, has the records of a shard in their order.
func (b *Batch) Add(r Record) {
	key, hour := coverage.Key(r.Stream, r.Shard), layout.HourOf(r.Time())
	if r.Verdict == Late {
		b.addLate(r, key, hour)
		return
	}
	sh, known := b.body.Shards[key]
	if !known {
		sh = b.state.Shards[key]
		sh.From = maps.Clone(sh.From)
	}
	if sh.Seen != "" && sh.Seen.Compare(r.Sequence) >= 0 {
		return
	}
	if sh.From == nil {
		sh.From = map[transform.EventClass]Edge{}
	}
	sh.Seen, sh.Hour, sh.Copied = r.Sequence, max(sh.Hour, hour), max(sh.Copied, b.now)
	counts := Counts{Deleted: 1}
	switch {
	case r.Verdict == Skip:
		counts.Skipped = 1
	case r.Verdict == Letter:
		counts.Letters = 1
		sh.From[r.Class] = Edge{Seq: r.Sequence, First: true}
	case r.Verdict == Known:
		sh.From[r.Class] = Edge{Seq: r.Sequence, First: true}
	case b.state.holds(r.Class, hour, key, r.Sequence):
		sh.From[r.Class] = Edge{Seq: r.Sequence}
	default:
		b.keep(r.Event, key, hour, edgeOf(sh, r.Event))
		sh.From[r.Class] = Edge{Seq: r.Sequence}
	}
	b.body.Shards[key] = sh
	if r.Class == transform.ClassTTL {
		b.count(hour, counts)
	}
}

// Has reports whether a record would add no event: it has none, or the stream or an object has it.
func (s *State) Has(r Record) bool {
	key := coverage.Key(r.Stream, r.Shard)
	if r.Verdict != Keep && r.Verdict != Late {
		return true
	}
	seen := s.Shards[key].Seen
	return r.Verdict == Keep && seen != "" && seen.Compare(r.Sequence) >= 0 ||
		s.holds(r.Class, layout.HourOf(r.Time()), key, r.Sequence)
}

// edgeOf returns where the interval of an event begins.
func edgeOf(sh Shard, e *transform.Event) Edge {
	if edge, ok := sh.From[e.Class]; ok {
		return edge
	}
	return Edge{Seq: coverage.Before(e.Sequence), First: true}
}

// addLate takes an event that was a dead letter, once.
func (b *Batch) addLate(r Record, key string, hour layout.Hour) {
	g := b.groups[PartKey{Class: r.Class, Hour: hour}]
	if b.state.holds(r.Class, hour, key, r.Sequence) || g != nil && g.Coverage.Contains(key, r.Sequence) {
		return
	}
	b.keep(r.Event, key, hour, Edge{Seq: coverage.Before(r.Sequence), First: true})
	if r.Class == transform.ClassTTL {
		b.count(hour, Counts{Letters: -1})
	}
}

func (b *Batch) count(hour layout.Hour, c Counts) {
	sum := b.body.Counts[hour]
	sum.add(c)
	b.body.Counts[hour] = sum
}

// keep adds an event to its group.
func (b *Batch) keep(e *transform.Event, key string, hour layout.Hour, from Edge) {
	if b.body.Table == "" {
		b.body.Table, b.body.Source = e.Table, e.Source
	}
	part := PartKey{Class: e.Class, Hour: hour}
	g := b.groups[part]
	if g == nil {
		g = &openGroup{Group: Group{Class: e.Class, Hour: hour, Coverage: coverage.Set{}}}
		b.groups[part] = g
	}
	g.Events++
	g.Coverage.Add(key, coverage.Interval{From: from.Seq, To: e.Sequence, First: from.First})
	n := len(g.raw)
	g.raw = appendEvent(g.raw, e)
	b.size += len(g.raw) - n
}

// Empty reports whether the batch changes nothing.
func (b *Batch) Empty() bool { return len(b.body.Shards) == 0 && len(b.groups) == 0 }

// Events returns how many events of each class are in the batch.
func (b *Batch) Events() map[transform.EventClass]int64 {
	n := map[transform.EventClass]int64{}
	for _, g := range b.groups {
		n[g.Class] += g.Events
	}
	return n
}

// Encode returns the entry's body and data.
func (b *Batch) Encode() (*Events, []byte) {
	var data []byte
	b.body.Groups = nil
	for _, part := range sortedParts(b.groups) {
		g := b.groups[part]
		g.Offset = len(data)
		data = compress(data, g.raw)
		g.Length = len(data) - g.Offset
		b.body.Groups = append(b.body.Groups, g.Group)
	}
	return &b.body, data
}
