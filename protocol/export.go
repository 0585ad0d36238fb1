package protocol

import (
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// tombstones is how long Bigtable remembers deletes, less two days for clocks and for a long copy.
const tombstones = (7*24 - 48) * time.Hour

// VersionOfExport returns the version of the items of an export that shows a moment.
func VersionOfExport(at change.Millis) change.Version { return change.Version(at) - ReadingMargin }

// CheckExport returns why an export cannot be copied beside a stream that is read from cover on;
// empty when it can. gapsUntil is the end of the latest gap.
func CheckExport(at, cover, gapsUntil, now change.Millis) string {
	when := at.Time().UTC().Format(time.RFC3339)
	from := at - ReadingMargin
	switch {
	case from < cover:
		return fmt.Sprintf("the export shows %s, and beside this stream it must show %s or later: "+
			"changes between the two could be missing", when, EarliestExport(cover).Time().UTC().Format(time.RFC3339))
	case from <= gapsUntil:
		return fmt.Sprintf("the export shows %s, and the stream has a gap until %s: "+
			"it would bring back what was deleted there", when, gapsUntil.Time().UTC().Format(time.RFC3339))
	case now-at > change.Millis(tombstones.Milliseconds()):
		return fmt.Sprintf("the export shows %s: deletes since then are not all remembered in Bigtable", when)
	}
	return ""
}

// EarliestExport returns the first moment that an export may show beside a stream that is read from
// cover on: clocks differ by less than the margin. It is a whole second, as the moments of exports
// are.
func EarliestExport(cover change.Millis) change.Millis {
	return (cover + ReadingMargin + 999) / 1000 * 1000
}
