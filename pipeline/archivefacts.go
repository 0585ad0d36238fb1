package pipeline

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// archiveFacts are the facts in the table's log about the archive, as the write loop last found
// them.
type archiveFacts struct {
	gaps    []archiveGap
	expired checkpoint.ExpiredCounts
	now     change.Millis
}

// archiveGap is a time in which deletions may have been lost.
type archiveGap = archiving.Gap

// archiveView is what the table publishes about its archive.
type archiveView struct {
	archiver atomic.Pointer[archiving.Archiver] // of the current life, or of the last one; nil: the table has none
	facts    atomic.Pointer[archiveFacts]
}

// observeArchive passes to the archive how far the log is copied, and the log's facts about lost
// deletions.
func (v *tableView) observeArchive(s *checkpoint.State) {
	a := v.archiver.Load()
	if a == nil {
		return
	}
	f := &archiveFacts{}
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if g.BeforeStart() {
			continue
		}
		until := g.Until
		if !g.Accepted && until == 0 {
			until = s.Date
		}
		gap := archiveGap{ID: g.ID(), Since: s.GapStart(g), Until: max(until, s.GapStart(g)), Accepted: g.Accepted}
		gap.Differs = slices.Contains(s.DifferingSinks(g), apply.SinkArchive)
		gap.Healed = g.Healed[apply.SinkArchive].Note
		f.gaps = append(f.gaps, gap)
	}
	f.expired, f.now = checkpoint.ExpiredCounts{Since: s.Expired.Since, Hours: maps.Clone(s.Expired.Hours)}, s.Date
	v.facts.Store(f)
	a.Passed(s.AppliedBy(apply.SinkArchive))
}

// archiveFacts returns the log's facts about an hour.
func (v *tableView) archiveFacts(hour layout.Hour) (out archiving.Facts) {
	f := v.facts.Load()
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

// archiveGaps returns the gaps in the terms of the archive.
func (v *tableView) archiveGaps() []archiving.Gap {
	if f := v.facts.Load(); f != nil {
		return f.gaps
	}
	return nil
}

// archiveHead returns a function that returns what the log is to know of the archive; nil where the
// table has none.
func (v *tableView) archiveHead() func() checkpoint.ArchiveHead {
	a := v.archiver.Load()
	if a == nil {
		return nil
	}
	return a.Head
}
