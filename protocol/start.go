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
