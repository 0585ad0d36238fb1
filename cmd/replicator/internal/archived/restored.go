package archived

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/restore"
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

	TTL restore.Mode `json:"-"`
}

// Left returns how many items were to be restored and were not.
func (r *Restored) Left() int64 { return r.Recreated + r.Refused + r.WithoutItem }

// Text returns the result in sentences; units is the limit of write units a second.
func (r *Restored) Text(table *source.TableInfo, units float64) string {
	var b strings.Builder
	items, size := render.Count(int(r.Restored), "item"), humanize.Bytes(uint64(r.Bytes))
	if r.DryRun {
		fmt.Fprintf(&b, "%s: %s of %s would be restored.\n", r.Table, items, size)
		if r.Restored > 0 {
			took := time.Duration(r.WriteUnits / units * float64(time.Second)).Round(time.Second)
			fmt.Fprintf(&b, "  They take about %s, %s at --write-units %s.%s\n",
				render.Count(int(r.WriteUnits), "write unit"), max(took, time.Second), humanize.Ftoa(units), extraCost(table))
		}
	} else {
		fmt.Fprintf(&b, "%s: %s of %s restored, with %s and %s.\n", r.Table, items, size,
			render.Count(int(r.WriteUnits), "write unit"), render.Count(int(r.ReadUnits), "read unit"))
	}
	line := func(n int64, text string) {
		if n > 0 {
			fmt.Fprintf(&b, "  %s %s.\n", humanize.Comma(n), text)
		}
	}
	line(r.ExpireAtOnce, "of them expire again at once, because --ttl keep leaves their time as it was")
	line(r.Unchanged, "in the table already, as archived")
	line(r.Recreated, "re-created since, with other content: left as they are")
	line(r.Refused, "refused by DynamoDB: not restored")
	line(r.WithoutItem, "archived without an item, because the stream had no image: not restored")
	line(r.DeletedByUser, "deleted by a user, not by time to live: not restored without --class user")
	if r.DryRun {
		fmt.Fprintf(&b, "  Nothing was written. --yes writes.\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// extraCost returns what else a write into the table costs: its indexes and replicas.
func extraCost(t *source.TableInfo) string {
	var parts []string
	if n := len(t.Indexes); n > 0 {
		parts = append(parts, render.Count(n, "index")+" may take as many again")
	}
	if n := len(t.Replicas); n > 0 {
		parts = append(parts, "replicas in other regions too ("+strings.Join(t.Replicas, ", ")+")")
	}
	if len(parts) == 0 {
		return ""
	}
	return " Besides: " + strings.Join(parts, "; ") + "."
}
