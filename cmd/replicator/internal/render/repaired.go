package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// Repaired says what a repair did, or would look at, a line for each table and target.
func Repaired(r *audit.Repaired) string {
	var lines []string
	for _, t := range r.Tables {
		if r.DryRun {
			lines = append(lines, wouldRepair(t))
		} else {
			lines = append(lines, repairedText(t))
		}
	}
	for _, f := range r.Foreign {
		lines = append(lines, foreignText(f, r.DryRun))
	}
	if len(lines) == 0 {
		lines = []string{"There is nothing to repair."}
	}
	return strings.Join(lines, "\n")
}

func wouldRepair(t *audit.RepairedTable) string {
	items, rows := Count(int(t.Items), "item"), Count(int(t.Rows), "row")
	text := fmt.Sprintf("%s: %s would be looked at, and %s that the differences name", t.Source, items, rows)
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(t.Kinds)) {
		kinds = append(kinds, report.KindName(verify.Kind(k))+" in "+Count(int(t.Kinds[k]), "item"))
	}
	if len(kinds) > 0 {
		text += ": " + strings.Join(kinds, ", ")
	}
	return text + "."
}

func repairedText(t *audit.RepairedTable) string {
	items := Count(int(t.Repaired), "item")
	parts := []string{fmt.Sprintf("%s: %s repaired (%d written)", t.Source, items, t.Written)}
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(t.Hot, "hot until "+t.HotUntil.Format("15:04:05 MST"))
	add(t.Different, "still different")
	add(t.Refused, "refused (`replicator dlq list`)")
	add(t.Unproven, "unproven, because they change all the time")
	return strings.Join(parts, ", ") + "."
}

// leftReasons say why foreign cells were not deleted, by the codes of resync.ForeignDeleter.
var leftReasons = map[string]string{
	"owned":          "an item may own them",
	"other_pipeline": "their rows belong to another pipeline",
	"hot":            "they are too new: repeat the command in a minute",
	"outside":        "no mapping has their family",
}

func foreignText(f *audit.RepairedForeign, dry bool) string {
	cells := Count(int(f.Columns), "foreign column")
	if dry || f.Deleted == 0 && len(f.Left) == 0 {
		return fmt.Sprintf("%s: %s, left as %s without --delete-foreign --yes.", f.Target, cells,
			english.PluralWord(int(f.Columns), "it is", "they are"))
	}
	parts := []string{fmt.Sprintf("%s: %d of %s deleted", f.Target, f.Deleted, cells)}
	for _, code := range slices.Sorted(maps.Keys(f.Left)) {
		why := leftReasons[code]
		if why == "" {
			why = code
		}
		parts = append(parts, fmt.Sprintf("%d left, since %s", f.Left[code], why))
	}
	return strings.Join(parts, ", ") + "."
}
