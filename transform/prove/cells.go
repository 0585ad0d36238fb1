package prove

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Proof 7: proveCellDeterminesItem shows that a cell in a shared row determines its item: row,
// column and, with `cell_id: ts`, time together determine the whole primary key.
func proveCellDeterminesItem(s site, e *ir.Emitter) {
	if e.Aggregate() || e.Shared {
		return
	}
	for _, c := range e.Columns() {
		templates := []*tmpl.Template{s.plan.Row, c.Column}
		if e.Time.Siblings {
			templates = append(templates, e.Time.Template)
		}
		missing := s.missingKeyParts(templates...)
		if len(missing) == 0 {
			continue
		}
		hint := "add it to the column: to: \"" + c.Family.Name + ":" + missing[0] +
			"/…\"; or to the row; or say `collisions: acknowledged`"
		if e.Time.Template != nil && !e.Time.Siblings {
			hint = "if the cell's time distinguishes the items, say `cell_id: ts`; or " + hint
		}
		for _, t := range templates {
			if t.Ambiguity != "" {
				hint = t.Ambiguity
			}
		}
		at, place := c.At, "column"
		if e.Time.Siblings {
			at, place = e.Entry.TS, "time "+e.Time.Template.Source+" of column"
			hint = timeHint(e.Time.Template, hint)
		}
		s.draft.Problems.Errorf(at, "not_injective", hint,
			"two items could write the same cell: row %q and %s %q do not determine %s",
			s.plan.Row.Source, place, c.String(), strings.Join(missing, ", "))
		return
	}
}

// timeHint returns the hint how to make a cell time determine its item. It returns fallback if the
// time's template has nothing to improve.
func timeHint(t *tmpl.Template, fallback string) string {
	switch {
	case slices.Contains(t.Filters, "iso_ms"):
		return "two texts may be one time: say `collisions: acknowledged` if they are not in your data, " +
			"or take the time from a number of the key"
	case len(t.Uses) == 1 && t.Ambiguity == "" && len(t.Filters) == 0:
		return "as text a number has many forms: ts: \"" + strings.Replace(t.Source, "}", "|int}", 1) + "\" takes one of them"
	}
	return fallback
}

// Proof 8: proveColumnHasOneItem shows that an item's column of one entry is never another item's
// column of an earlier entry, or of another column of this one. By proof 7 a column determines its
// item if the template that gave it is known. If either of two templates may have given it, it
// determines the item only if both templates begin with the same references to the key.
func proveColumnHasOneItem(s site, earlier []*ir.Emitter, e *ir.Emitter) {
	for _, o := range append(slices.Clone(earlier), e) {
		if o.Shared || e.Shared || o.Aggregate() {
			continue
		}
		for _, a := range o.Columns() {
			for _, b := range e.Columns() {
				if a.Column == b.Column || a.Family != b.Family || !tmpl.Overlap(a.Column.Shape, b.Column.Shape) {
					continue
				}
				if missing := s.missingInBoth(o, e, a, b); len(missing) > 0 {
					s.draft.Problems.Errorf(b.At, "not_injective", sameBeginningHint(missing, a, b),
						"column %q of one item could be column %q of another: they do not determine %s in the same place",
						b.String(), a.String(), strings.Join(missing, ", "))
					return
				}
			}
		}
	}
}

// missingInBoth returns the references to those parts of the primary key that equal cells of
// columns a (of emitter o) and b (of emitter e) do not determine, because the references do not
// stand in the same place of both templates.
func (s site) missingInBoth(o, e *ir.Emitter, a, b ir.ColumnSet) []string {
	known := tmpl.Common(a.Column, b.Column)
	if s.plan.Row.Ambiguity == "" {
		maps.Copy(known, s.plan.Row.Covers)
	}
	if o.Time.Siblings && e.Time.Siblings && o.Entry.TS.S == e.Entry.TS.S && e.Time.Template.Ambiguity == "" {
		maps.Copy(known, e.Time.Template.Covers)
	}
	return s.missingGiven(known)
}

// sameBeginningHint returns the hint how two columns can begin with the same references to the key.
func sameBeginningHint(missing []string, a, b ir.ColumnSet) string {
	if tmpl.Begins(a.Column, b.Column) {
		return "say where the first part ends: `segments: escape`, or a capture that cannot hold what follows it, " +
			"as {x:seg} before the delimiter; or two families"
	}
	return "begin both columns with " + strings.Join(missing, "/") +
		"/, give them different first words, or two families; " +
		"or say `collisions: acknowledged`"
}

// Proof 9: proveCellsOfItemDiffer shows that two entries do not write one column of one item. If
// they may, it returns true: the cells of every item must then be compared while it is mapped. It
// refuses two fixed columns that are always the same.
func proveCellsOfItemDiffer(s site) (compare bool) {
	for i, a := range s.plan.Emitters {
		if mayRepeatColumn(a) {
			compare = true
		}
		for _, b := range s.plan.Emitters[:i] {
			ca, cb, common := ir.CommonColumn(a, b)
			if !common || !a.Diverts() && !b.Diverts() && (a.Avoids(b) || b.Avoids(a)) {
				continue
			}
			compare = true
			fixed := len(ca.Column.Uses) == 0 && len(cb.Column.Uses) == 0
			if fixed && !a.Aggregate() && (!a.Time.Siblings || !b.Time.Siblings) {
				s.draft.Problems.Errorf(ca.At, "collision", "give each its own column", "`%s` and `%s` both write %s",
					b.Describe(), a.Describe(), ca)
			}
		}
	}
	return compare
}

// mayRepeatColumn reports whether this emitter alone may write two values of one item to the same
// column.
func mayRepeatColumn(e *ir.Emitter) bool {
	f := e.Values.Flatten
	return len(e.Source.Attributes().Rename) > 0 || f != nil && !f.Escapes || e.Qualifier.Lossy
}
