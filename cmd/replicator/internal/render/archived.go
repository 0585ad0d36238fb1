package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/restore"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/source"
)

// ArchiveReport prints a report of the archive in sentences.
func ArchiveReport(w io.Writer, r *manifest.Report) {
	fmt.Fprintf(w, "%s: %s. %s\n", r.Table, r.Verdict, verdicts[r.Verdict])
	if r.Hours > 0 {
		fmt.Fprintf(w, "  %s from %s to %s: %s with %s in %s; %s.\n",
			Count(r.Hours, "closed hour"), r.First, r.Last, Count(int(r.Objects), "object"),
			Count(int(r.Events), "event"), humanize.Bytes(uint64(r.Bytes)), depths[r.Depth])
		fmt.Fprintf(w, "  %s by time to live: %s not to be archived by the mapping, %s.\n",
			Count(int(r.Deleted), "deletion"), humanize.Comma(r.Skipped), Count(int(r.Letters), "dead letter"))
	}
	if r.Open+r.Late > 0 {
		fmt.Fprintf(w, "  Not checked, because no manifest names them yet: %s of open hours, %s of late events.\n",
			Count(int(r.Open), "object"), humanize.Comma(r.Late))
	}
	shown := map[manifest.Kind]int{}
	for _, f := range r.Findings {
		fmt.Fprintf(w, "  %s: %s\n", f.Grade, f.Text)
		shown[f.Kind]++
	}
	for _, kind := range r.Kinds() {
		if more := r.Counts[kind] - shown[kind]; more > 0 {
			fmt.Fprintf(w, "  … and %s more of the kind %s\n", humanize.Comma(int64(more)),
				strings.ReplaceAll(string(kind), "_", " "))
		}
	}
}

// verdicts explains each verdict.
var verdicts = map[manifest.Grade]string{
	manifest.OK:        "The archive holds what its manifests say, once each, and nothing else.",
	manifest.Different: "The archive is not what its manifests say.",
	manifest.Unproven:  "Nothing that was checked is wrong, but not everything could be shown.",
}

// depths describes how much of each object was read.
var depths = map[manifest.Depth]string{
	manifest.Quick: "of each object the size and the footer were compared",
	manifest.Bytes: "of each object every byte was compared, by its SHA-256",
	manifest.Full:  "of each object every byte and every event was compared",
}

// Restored returns in sentences what a restore did; units is the limit of write units a second.
func Restored(r *restore.Restored, table *source.TableInfo, units float64) string {
	var b strings.Builder
	items, size := Count(int(r.Restored), "item"), humanize.Bytes(uint64(r.Bytes))
	if r.DryRun {
		fmt.Fprintf(&b, "%s: %s of %s would be restored.\n", r.Table, items, size)
		if r.Restored > 0 {
			took := time.Duration(r.WriteUnits / units * float64(time.Second)).Round(time.Second)
			fmt.Fprintf(&b, "  They take about %s, %s at --write-units %s.%s\n",
				Count(int(r.WriteUnits), "write unit"), max(took, time.Second), humanize.Ftoa(units), extraCost(table))
		}
	} else {
		fmt.Fprintf(&b, "%s: %s of %s restored, with %s and %s.\n", r.Table, items, size,
			Count(int(r.WriteUnits), "write unit"), Count(int(r.ReadUnits), "read unit"))
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
		parts = append(parts, english.Plural(n, "index", "indexes")+" may take as many again")
	}
	if n := len(t.Replicas); n > 0 {
		parts = append(parts, "replicas in other regions too ("+strings.Join(t.Replicas, ", ")+")")
	}
	if len(parts) == 0 {
		return ""
	}
	return " Besides: " + strings.Join(parts, "; ") + "."
}
