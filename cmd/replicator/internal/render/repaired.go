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

// Repaired returns what a repair did, or would look at, a line for each table and target.
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
	if t.Whole {
		text := fmt.Sprintf("%s: the whole table would be compared with %s, about %s", t.Source, t.Target,
			Count(int(t.Items), "item"))
		if len(t.Gaps) > 0 {
			text += ", and that heals " + strings.Join(t.Gaps, ", ")
		}
		return text + "."
	}
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
	if len(t.Requests) > 0 {
		return fmt.Sprintf("%s: %s asked for: %s.\n  %s", t.Source, Count(int(t.Items), "item"),
			Count(len(t.Requests), "request"), strings.Join(t.Requests, "\n  "))
	}
	// The owner writes all rows of a single item, also those that were equal.
	equal := areOf(t.Repaired, "item") + " equal now"
	parts := []string{fmt.Sprintf("%s: %s (%d written, whether they differed or not)", t.Source, equal, t.Written)}
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(t.Hot, "hot until "+ClockTime(t.HotUntil))
	add(t.Different, "still different")
	add(t.Refused, "refused (`replicator dlq list`)")
	add(t.Unproven, "unproven, because they change all the time")
	return strings.Join(parts, ", ") + "."
}

// areOf returns "1 item is" or "2 items are".
func areOf(n int64, noun string) string {
	return Count(int(n), noun) + " " + english.PluralWord(int(n), "is", "are")
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
	if len(f.Requests) > 0 {
		return fmt.Sprintf("%s: the deletion of %s asked for: %s.\n  %s", f.Target, cells,
			Count(len(f.Requests), "request"), strings.Join(f.Requests, "\n  "))
	}
	if dry || !f.Asked {
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

// Repair is the object of a repair over a table, keys or an export: what its alias gives, and what
// repair adds.
type Repair struct {
	Resynced
	DryRun  bool                     `json:"dry_run"`
	Tables  []*audit.RepairedTable   `json:"tables"`
	Foreign []*audit.RepairedForeign `json:"foreign"`
}

// RepairOfTable returns the object of a repair of a whole table, which heals gaps.
func RepairOfTable(r Resynced, target string, gaps []string) Repair {
	t := &audit.RepairedTable{
		Source: r.Table, Target: target, Whole: true, Gaps: gaps, Items: r.Items, Equal: r.Equal, Written: r.Written,
		Left: r.Left, Hot: r.Hot, Refused: r.Letters, Unproven: r.Unproven,
		Repaired: r.Items - r.Hot - r.Letters - r.Unproven,
	}
	return Repair{Resynced: r, Tables: []*audit.RepairedTable{t}, Foreign: []*audit.RepairedForeign{}}
}

// RepairOfItems returns the object of a repair of single items of a table.
func RepairOfItems(table string, done *audit.Repaired) Repair {
	r := Repair{
		Resynced: Resynced{Schema: done.Schema, Table: table}, DryRun: done.DryRun, Tables: done.Tables,
		Foreign: done.Foreign,
	}
	for _, t := range done.Tables { // at most one: keys and exports are those of one table
		r.Resynced = Resynced{
			Schema: done.Schema, Table: table, Items: t.Items, Written: t.Written, Equal: t.Equal, Left: t.Left, Hot: t.Hot,
			Letters: t.Refused, Unproven: t.Unproven, Requests: t.Requests,
		}
	}
	return r
}

// OrderedGap is a gap for which the resync with an id was asked for.
type OrderedGap struct {
	Gap
	Resync string `json:"resync"`
}
