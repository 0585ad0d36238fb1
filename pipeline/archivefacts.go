package pipeline

import (
	"maps"
	"sync/atomic"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/checkpoint/expired"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// archiveFacts is what the table's log says about the archive, as the write loop saw it last.
type archiveFacts struct {
	gaps    []archiveGap
	expired expired.State
	now     change.Millis
}

// archiveGap is a time in which deletions may have been lost.
type archiveGap struct {
	id           string
	since, until change.Millis
}

// archiveView is what the table publishes about its archive.
type archiveView struct {
	archiver atomic.Pointer[archiving.Archiver] // of the current life, or of the last one; nil: the table has none
	facts    atomic.Pointer[archiveFacts]
}

// observeArchive tells the archive how far the log is copied, and what it says about lost deletions.
func (v *tableView) observeArchive(s *checkpoint.State) {
	a := v.archiver.Load()
	if a == nil {
		return
	}
	f := &archiveFacts{}
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if g.Reason == checkpoint.ReasonBeforeStart {
			continue
		}
		until := g.Until
		if !g.Accepted && until == 0 {
			until = s.Date
		}
		f.gaps = append(f.gaps, archiveGap{id: g.ID(), since: s.GapStart(g), until: max(until, s.GapStart(g))})
	}
	if s.Expired != nil {
		f.expired, f.now = expired.State{Since: s.Expired.Since, Hours: maps.Clone(s.Expired.Hours)}, s.Date
	}
	v.facts.Store(f)
	a.Passed(s.AppliedBy(apply.SinkArchive))
}

// archiveFacts returns what the log says about an hour.
func (v *tableView) archiveFacts(hour layout.Hour) (out archiving.Facts) {
	f := v.facts.Load()
	if f == nil {
		return out
	}
	for _, g := range f.gaps {
		if layout.HourOf(g.since.Time()) <= hour && hour <= layout.HourOf(g.until.Time()) {
			out.Incomplete = append(out.Incomplete, g.id)
		}
	}
	if n, known := f.expired.Of(expired.Hour(hour), f.now); known && f.now > 0 {
		out.Counted = &n
	}
	return out
}

// archiveHead returns a function that returns what the log is to know of the archive; nil where the table has none.
func (v *tableView) archiveHead() func() expired.Head {
	a := v.archiver.Load()
	if a == nil {
		return nil
	}
	return a.Head
}
