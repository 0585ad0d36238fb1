package archiving

import (
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// Facts are the facts in the table's log about an hour of deletions.
type Facts struct {
	Counted    *int64   // deletions by TTL that were counted when they were read; nil: not known
	Incomplete []string // ids of gaps that may have lost deletions of the hour
}

// logFacts are the facts in the table's log about the archive, as Observe found them. They never
// change.
type logFacts struct {
	gaps    []Gap
	expired checkpoint.ExpiredCounts
	now     change.Millis
}

// Observe notes what the table's log holds: how far it is copied, and its facts about lost
// deletions. The goroutine that owns the log's writer calls it.
func (a *Archiver) Observe(s *checkpoint.State) {
	f := &logFacts{now: s.Date}
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if g.BeforeStart() {
			continue
		}
		until := g.Until
		if !g.Accepted && until == 0 {
			until = s.Date
		}
		f.gaps = append(f.gaps, Gap{
			ID: g.ID(), Since: s.GapStart(g), Until: max(until, s.GapStart(g)), Accepted: g.Accepted,
			Differs: slices.Contains(s.DifferingSinks(g), checkpoint.SinkArchive), Healed: g.Healed[checkpoint.SinkArchive].Note,
		})
	}
	f.expired = checkpoint.ExpiredCounts{Since: s.Expired.Since, Hours: maps.Clone(s.Expired.Hours)}
	a.facts.Store(f)
	a.Passed(s.AppliedBy(checkpoint.SinkArchive))
}

// factsOf returns the log's facts about an hour.
func (a *Archiver) factsOf(hour layout.Hour) (out Facts) {
	f := a.facts.Load()
	if f == nil {
		return out
	}
	for _, g := range f.gaps {
		if layout.HourOf(g.Since.Time()) <= hour && hour <= layout.HourOf(g.Until.Time()) {
			out.Incomplete = append(out.Incomplete, g.ID)
		}
	}
	if n, known := f.expired.Of(checkpoint.Hour(hour), f.now); known && f.now > 0 {
		out.Counted = &n
	}
	return out
}

// Gap is a gap of the table's stream, in the terms of the archive: a time in which deletions may
// have been lost.
type Gap struct {
	ID           string
	Since, Until change.Millis
	Accepted     bool
	Differs      bool   // the archive lacks what it lost
	Healed       string // the archive does not lack it any more: the note about that
}

// Gaps returns the gaps of the table's stream.
func (a *Archiver) Gaps() []Gap {
	if f := a.facts.Load(); f != nil {
		return f.gaps
	}
	return nil
}
