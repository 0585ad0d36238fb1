package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/transform"
)

// classNames are the names of the classes.
var classNames = map[string]string{"R": "replace-row", "K": "by-key", "D": "by-diff"}

// Class returns a class with its name: "R (replace-row)".
func Class(class string) string { return class + " (" + classNames[class] + ")" }

// classTexts explain each class.
var classTexts = map[string]string{
	"R": "the row is this item's alone: what it holds is deleted, then the item is written",
	"K": "other items write this row too: only this item's columns are touched, and its key determines which ones",
	"D": "other items write this row too: only this item's columns are touched, " +
		"and the old image is needed to know which ones",
}

// leftTexts explain each class for a row that the item leaves.
var leftTexts = map[string]string{
	"R": "the row is this item's alone: it is deleted as a whole",
	"K": "other items write this row too: only this item's columns are deleted, and its key determines which ones",
	"D": "other items write this row too: only this item's columns are deleted, " +
		"and the old image is needed to know which ones",
}

// Explain formats the steps from an item to its cells in the order of a user's questions: which
// rule and why, which rows, what happens to each cell, what is left out.
func Explain(target string, s *transform.Steps) string {
	b := &strings.Builder{}
	if s.Rule != "" {
		fmt.Fprintf(b, "Rule %s takes this item", s.Rule)
		if s.Line > 0 {
			fmt.Fprintf(b, " (line %d of the mapping)", s.Line)
		}
		fmt.Fprintln(b, captureText(s.Captures)+".")
	} else {
		fmt.Fprintln(b, "No rule takes this item.")
	}
	for _, p := range s.Passed {
		fmt.Fprintf(b, "  passed over: rule %s, since %s\n", p.Rule, p.Why)
	}
	switch {
	case s.Drop:
		fmt.Fprintln(b, "The rule drops it on purpose: nothing is written.")
	case s.Refused != "":
	case len(s.Rows) == 0:
		fmt.Fprintln(b, "Nothing is written.")
	}
	for i := range s.Rows {
		writeRow(b, target, &s.Rows[i])
	}
	writeCoverage(b, s.Coverage)
	return strings.TrimRight(b.String(), "\n")
}

// captureText lists the captures of a rule's patterns.
func captureText(captures map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(captures)) {
		parts = append(parts, fmt.Sprintf("%s = %q", name, captures[name]))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// writeRow writes a row: its class with the reason, the deletes, the cells that are set.
func writeRow(b *strings.Builder, target string, r *transform.StepRow) {
	fmt.Fprintf(b, "\nRow %s of table %s (%s)\n", r.Row, target, r.Name)
	texts := classTexts
	if r.Left {
		texts = leftTexts
		fmt.Fprintln(b, "  the item leaves this row")
	}
	fmt.Fprintf(b, "  class %s: %s\n", Class(r.Class), texts[r.Class])
	fmt.Fprintf(b, "    because %s\n", r.Why)
	if r.Wipes {
		spared := ""
		if len(r.Keeps) > 0 {
			spared = ", except families " + strings.Join(r.Keeps, ", ")
		}
		fmt.Fprintf(b, "  delete  the whole row%s\n", spared)
	}
	for _, d := range r.Deletes {
		during := ""
		if d.To > 0 {
			during = fmt.Sprintf(" from %s until %s", CellTime(d.From), CellTime(d.To))
		}
		fmt.Fprintf(b, "  delete  %s:%s%s (%s)\n", d.Family, d.Qualifier, during, d.Why)
	}
	for _, cell := range r.Cells {
		at := ""
		if cell.TS != nil {
			at = " @ " + CellTime(*cell.TS)
		}
		if cell.Merge != "" {
			fmt.Fprintf(b, "  merge   %s:%s (%s) with %s%s\n", cell.Family, cell.Qualifier, cell.Merge, cell.Value, at)
			continue
		}
		fmt.Fprintf(b, "  set     %s:%s = %s%s\n", cell.Family, cell.Qualifier, cmp.Or(cell.Value, "(empty)"), at)
	}
	if r.Unseen {
		fmt.Fprintln(b, "  no cell that readers see: only _tr_live says that the item is there. For a cell of its own:")
		fmt.Fprintln(b, "  `presence:` beside a preset, or {const: \"\", to: \"family:column\"} in the rule")
	}
	if slices.ContainsFunc(r.Cells, func(c transform.StepCell) bool { return c.TS == nil }) {
		fmt.Fprintln(b, "  cells without a time get that of the change")
	}
}

// writeCoverage lists the attributes that are written nowhere, on purpose or not.
func writeCoverage(b *strings.Builder, uses []transform.Use) {
	names := map[string][]string{}
	for _, u := range uses {
		names[u.Use] = append(names[u.Use], u.Attr)
	}
	if n := names["ignored"]; len(n) > 0 {
		fmt.Fprintf(b, "\nLeft out on purpose: %s\n", strings.Join(n, ", "))
	}
	if n := names["lost"]; len(n) > 0 {
		list := strings.Join(n, ", ")
		fmt.Fprintf(b, "\nWritten nowhere: %s. Map them, or leave them out on purpose with ignore: [%s]\n", list, list)
	}
}

// CellTime returns the time of a cell, in milliseconds, for people.
func CellTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
