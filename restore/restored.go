package restore

import (
	"github.com/tailrace-cdc/replicator/source/putback"
)

// Restored is what `archive restore` did, or in a dry run would do.
type Restored struct {
	Schema int    `json:"schema"`
	Table  string `json:"table"`
	DryRun bool   `json:"dry_run"`
	Events int64  `json:"events"` // of the chosen time
	Items  int64  `json:"items"`  // newest events, one for each item

	Restored     int64 `json:"restored"` // in a dry run: would be
	Bytes        int64 `json:"bytes"`    // of those, as DynamoDB counts
	ExpireAtOnce int64 `json:"expire_at_once"`

	Unchanged     int64 `json:"unchanged"` // in the table, as archived
	Recreated     int64 `json:"recreated"` // in the table, with other content
	Refused       int64 `json:"refused"`
	WithoutItem   int64 `json:"without_item"` // the event has no image
	DeletedByUser int64 `json:"deleted_by_user"`

	WriteUnits float64 `json:"write_units"` // in a dry run: estimated
	ReadUnits  float64 `json:"read_units"`

	TTL putback.Mode `json:"-"`
}

// Left returns how many items were to be restored and were not.
func (r *Restored) Left() int64 { return r.Recreated + r.Refused + r.WithoutItem }
