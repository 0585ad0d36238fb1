package checkpoint

import (
	"maps"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Hour is a time in hours since 1970.
type Hour int64

// HourOf returns the hour of a time.
func HourOf(t change.Millis) Hour { return Hour(int64(t) / time.Hour.Milliseconds()) }

// CountsByHour are deletions by the hour in which they were made.
type CountsByHour map[Hour]int64

// ArchiveHead is the end of the chain of manifests of the table's archive, and how far its stream
// goes.
type ArchiveHead struct {
	N    uint64 `json:"n"`
	Hash string `json:"hash"`
	// End is an entry that the archive's stream has: if the stream ends before End, the stream or
	// its end was lost. Open is the first hour with events that may then be missing, because no
	// manifest has closed it or they were in no object.
	End  uint64 `json:"end,omitempty"`
	Open Hour   `json:"open,omitempty"`
}

// Moved reports whether the head is worth an entry of its own, where the log has another one. That
// the archive's stream has more entries is not: it is stored with the next marks.
func (h ArchiveHead) Moved(from *ArchiveHead) bool {
	return from == nil || h.N != from.N || h.Hash != from.Hash || h.Open != from.Open || h.End < from.End
}

// ExpiredCounts counts the deletions by DynamoDB's TTL that a log holds, by hour, as they are read.
// An archive is compared with these counts, which nothing of the archive has touched. It also has
// the end of the archive's manifests, so that a chain with its end cut off is found.
type ExpiredCounts struct {
	// Since is the first hour that is counted completely.
	Since Hour         `json:"since,omitempty"`
	Hours CountsByHour `json:"hours,omitempty"`
	Head  *ArchiveHead `json:"head,omitempty"`
}

// Begin notes the start of a stream. What a recovery reads again may have been trimmed in part.
func (s *ExpiredCounts) Begin(recovered bool, at change.Millis) {
	if recovered {
		s.Since = HourOf(at) + 1
	}
}

// hoursCounted is for how many hours before the newest one deletions are counted.
const hoursCounted = 7 * 24

// Add counts the deletions of a page that was requested at a time.
func (s *ExpiredCounts) Add(c CountsByHour, at change.Millis) {
	if len(c) == 0 {
		return
	}
	if s.Hours == nil {
		s.Hours = CountsByHour{}
	}
	for hour, n := range c {
		s.Hours[hour] += n
	}
	maps.DeleteFunc(s.Hours, func(h Hour, _ int64) bool { return h < HourOf(at)-hoursCounted })
}

// Of returns how many items TTL deleted in an hour; false where that is not known. now is the
// service's clock.
func (s *ExpiredCounts) Of(hour Hour, now change.Millis) (int64, bool) {
	if hour < s.Since || hour < HourOf(now)-hoursCounted {
		return 0, false
	}
	return s.Hours[hour], true
}
