package ir

import (
	"time"

	"github.com/tailrace-cdc/replicator/problem"
)

// Family is a column family as the target table must have it.
type Family struct {
	Name         string
	MaxVersions  int           // 0 = all
	MaxAge       time.Duration // 0 = for ever
	Intersection bool          // a cell is removed when both limits are passed; otherwise when either is
	Aggregate    string        // "", max, min, hll: values are merged by the server
}

// Ages reports whether the newest cells of a column are removed because of their age. Where a cell
// goes only when both limits are passed, the newest versions stay whatever their age.
func (f *Family) Ages() bool { return f.MaxAge > 0 && (!f.Intersection || f.MaxVersions == 0) }

// FamilyRule is a family with the mapping's settings for its cells.
type FamilyRule struct {
	Family
	History bool         // more than the newest version is wanted
	Expires bool         // expires_by_timestamp: cell times are times of expiry
	Removed string       // what becomes of a cell whose attribute or item is removed: delete, keep, empty
	At      problem.Text // where the author declared it
}
