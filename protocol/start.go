package protocol

import (
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// maxSkew is how far the service's clocks may differ from each other: how far the Date of a reply
// may lie before the creation of a record that was read earlier.
const maxSkew = 30 * time.Second

// FloorAfter returns the floor of the life that follows one with a floor, begun at a time of the
// service (Rule 5). lead is how far versions may have run ahead of that time.
func FloorAfter(floor change.Version, date change.Millis, lead time.Duration) change.Version {
	return max(floor, change.Version(date)+change.Version((time.Second+maxSkew+lead).Milliseconds()))
}

// StartBefore is how far before its first listing a stream is read beside a copy, or in a new life.
// Records are created with whole seconds, in parts of the service with whole minutes, by clocks
// that differ: a change that the first page of the copy lacks must be among the records that are
// read.
const StartBefore change.Millis = 5 * 60 * 1000

// StartWish is what a first start is asked for.
type StartWish struct {
	Mode string        // as the log spells where reading begins
	At   change.Millis // where reading begins; 0: at the trim horizon
	Free bool          // nothing was asked for: Mode and At are the trim horizon
	// Backfill is where the older items come from: checkpoint.FromScan, FromExport or, for nowhere,
	// BackfillNone. Empty: they are scanned, unless a later start leaves out the changes that a copy
	// needs.
	Backfill string
	// AllRecords is set where something else needs all records that the stream has: an export that
	// is as old as they are, or an archive.
	AllRecords bool
}

// BackfillNone is the Backfill of a start that copies nothing.
const BackfillNone = "none"

// ModeBackfill is how the log spells a start that a backfill decides: StartBefore the listing.
const ModeBackfill = "before_backfill"

// PlanStart decides where a first life begins to read, and where the items come from that are
// older, at the listing of a stream. It returns false where changes between a copy and a later
// start would be missing.
//
// Rule 3: it is decided once, and the log keeps the answer.
func PlanStart(w StartWish, listed change.Millis) (*checkpoint.Start, bool) {
	s := &checkpoint.Start{Mode: w.Mode, At: w.At, Date: listed, Backfill: w.Backfill}
	if s.Backfill == "" {
		s.Backfill = checkpoint.FromScan
	}
	later := w.At > listed-StartBefore
	switch {
	case s.Backfill == BackfillNone, later && w.Backfill == "":
		s.Backfill = ""
	case later:
		return nil, false
	case w.Free && !w.AllRecords:
		s.Mode, s.At = ModeBackfill, listed-StartBefore
	}
	return s, true
}

// RecoveredStart returns the start of the life that follows a lost log, with its floor, at the
// listing of the stream. Records from before it are not applied to Bigtable: the rows hold them, or
// a later state, or the resync that follows covers them, and readers would see the rows go back. An
// archive takes all of them that are left: allRecords.
func RecoveredStart(mode string, floor change.Version, listed change.Millis, allRecords bool) *checkpoint.Start {
	s := &checkpoint.Start{
		Mode: mode, Floor: floor, Recover: true, Date: listed, After: listed, At: listed - StartBefore,
	}
	if allRecords {
		s.At = 0
	}
	return s
}

// firstPage is how long after the first listing the copy reads its first page: what was written
// before it is in the page, what is written after it is in the stream.
const firstPage change.Millis = 2 * 1000

// FirstCopy returns the copy that the start of a log has decided on, while it has no entry yet; nil
// for none. Which parts it has, and what it may hold, is for the caller to add.
func FirstCopy(s *checkpoint.State) *checkpoint.Copy {
	if !s.CopyPending() {
		return nil
	}
	return &checkpoint.Copy{
		ID: fmt.Sprintf("backfill-%d", max(s.Life, 1)), Why: checkpoint.CopyBackfill, From: s.Backfill,
		Began: s.Streams[0].Date + firstPage,
	}
}

// MappingCopy returns the copy that an accepted mapping needs, while it has no entry yet; nil for
// none.
//
// Rule 6: what was applied with the mapping before has versions up to Switched.Above, so the first
// page is read when a minute below the reading is above that: the copy replaces every row.
func MappingCopy(s *checkpoint.State, now change.Millis) *checkpoint.Copy {
	if s.Switched == nil {
		return nil
	}
	return &checkpoint.Copy{
		ID:  "mapping-" + s.Switched.To[:min(12, len(s.Switched.To))] + "-" + fmt.Sprint(s.Switched.Seq),
		Why: checkpoint.CopyMapping, From: checkpoint.FromScan,
		Began: max(now, change.Millis(s.Switched.Above)+ReadingMargin+1000),
	}
}
