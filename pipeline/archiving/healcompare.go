package archiving

import (
	"crypto/sha256"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// archivedAs is what the archive holds of a deletion that an export shows.
type archivedAs byte

const (
	unknown      archivedAs = iota
	earlierItem             // the item was deleted before, in the window, and is archived: the image is of that deletion
	sameDeletion            // the stream gave it, or another export
	own                     // this healing stored it, before a crash
)

// clockSlack is the largest difference between the times that a record and an export give for one
// deletion.
const clockSlack change.Millis = 5_000

// compare marks the deletion of a chunk that an event of the archive belongs to.
func (r *reading) compare(chunk map[itemHash]*deletion, e *transform.Event) {
	d := chunk[hashOf(e.Subject)]
	if d == nil {
		return
	}
	// The time of a record is cut to seconds, and by some hosts of the service to minutes.
	latest := e.Created + 1000
	if e.Created%60_000 == 0 {
		latest = e.Created + 60_000
	}
	switch {
	case e.Class == transform.ClassHealed && e.Stream == r.label:
		d.known = own
	case latest < r.e.From || e.Created > d.at+clockSlack: // of an item before the window, or behind it
	case latest+clockSlack < d.at:
		d.known = max(d.known, earlierItem)
	default:
		d.known = max(d.known, sameDeletion)
	}
}

func hashOf(subject string) (h itemHash) {
	sum := sha256.Sum256([]byte(subject))
	copy(h[:], sum[:])
	return h
}
