package prove

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// cellTellsItem checks that a cell in a shared row tells its item.
func cellTellsItem(c *ir.Draft, r *ir.Rule, pl *ir.Plan, e *ir.Emitter) {
	if e.Aggregate() || e.Shared {
		return
	}
	for _, o := range e.Columns() {
		told := []*tmpl.Template{pl.Row, o.Column}
		if e.Time.Siblings {
			told = append(told, e.Time.Template)
		}
		missing := missingFrom(r, c, pl, told...)
		if len(missing) == 0 {
			continue
		}
		hint := "add it to the column: to: \"" + o.Family.Name + ":" + missing[0] + "/…\"; or to the row; or say `collisions: acknowledged`"
		if e.Time.Template != nil && !e.Time.Siblings {
			hint = "if the cell's time tells the items apart, say `cell_id: ts`; or " + hint
		}
		for _, t := range told {
			if t.Ambig != "" {
				hint = t.Ambig
			}
		}
		at, place := o.At, "column"
		if e.Time.Siblings {
			at, place = e.Entry.TS, "time "+e.Time.Template.Source+" of column"
			hint = timeTells(e, hint)
		}
		c.Problems.Errorf(at, "not_injective", hint, "two items could write the same cell: row %q and %s %q do not tell %s", pl.Row.Source, place, o.String(), strings.Join(missing, ", "))
		return
	}
}

// timeTells says how a cell time can tell its item.
func timeTells(e *ir.Emitter, otherwise string) string {
	for _, f := range e.Time.Template.Filters {
		if f == "iso_ms" {
			return "two texts may be one time: say `collisions: acknowledged` if they are not in your data, or take the time from a number of the key"
		}
	}
	if len(e.Time.Template.Uses) == 1 && e.Time.Template.Ambig == "" && len(e.Time.Template.Filters) == 0 {
		return "as text a number has many forms: ts: \"" + strings.Replace(e.Time.Template.Source, "}", "|int}", 1) + "\" takes one of them"
	}
	return otherwise
}

// columnsTellEmitter checks that one item's column of an emitter is never another item's column of another emitter: each
// template tells its item by itself, but not which template it was. They do when what tells the items stands at
// the beginning of both, in the same words.
func columnsTellEmitter(c *ir.Draft, r *ir.Rule, pl *ir.Plan, others []*ir.Emitter, e *ir.Emitter) {
	for _, o := range append(slices.Clone(others), e) {
		for _, a := range o.Columns() {
			for _, b := range e.Columns() {
				if a.Column == b.Column || a.Family != b.Family || o.Shared || e.Shared || o.Aggregate() || !tmpl.Overlap(a.Column.Shape, b.Column.Shape) {
					continue
				}
				told := tmpl.Common(a.Column, b.Column)
				if pl.Row.Ambig == "" {
					maps.Copy(told, pl.Row.Covers)
				}
				if o.Time.Siblings && e.Time.Siblings && o.Entry.TS.S == e.Entry.TS.S && e.Time.Template.Ambig == "" {
					maps.Copy(told, e.Time.Template.Covers)
				}
				if missing := missingKeyParts(r, c, pl, told); len(missing) > 0 {
					hint := "begin both columns with " + strings.Join(missing, "/") + "/, give them different first words, or two families; or say `collisions: acknowledged`"
					if tmpl.Begins(a.Column, b.Column) {
						hint = "say where the first part ends: `segments: escape`, or a capture that cannot hold what follows it, as {x:seg} before the delimiter; or two families"
					}
					c.Problems.Errorf(b.At, "not_injective", hint, "column %q of one item could be column %q of another: they do not tell %s in the same place", b.String(), a.String(), strings.Join(missing, ", "))
					return
				}
			}
		}
	}
}

// cellsDiffer says whether two emitters of one row may give the same cell, so that every item must be
// compared; two fixed columns that are always the same are refused at once.
func cellsDiffer(c *ir.Draft, pl *ir.Plan) (possible bool) {
	for i, a := range pl.Emitters {
		if mayRepeatColumn(a) {
			possible = true
		}
		for _, b := range pl.Emitters[:i] {
			ca, cb, meet := ir.CommonColumn(a, b)
			if !meet || !a.Diverts() && !b.Diverts() && (a.Avoids(b) || b.Avoids(a)) {
				continue
			}
			possible = true
			fixed := len(ca.Column.Uses) == 0 && len(cb.Column.Uses) == 0
			if fixed && !a.Aggregate() && (!a.Time.Siblings || !b.Time.Siblings) {
				c.Problems.Errorf(ca.At, "collision", "give each its own column", "`%s` and `%s` both write %s", b.Describe(), a.Describe(), ca)
			}
		}
	}
	return possible
}

// mayRepeatColumn reports whether two values of one item may go to the same column by this emitter alone.
func mayRepeatColumn(e *ir.Emitter) bool {
	f := e.Values.Flatten
	return len(e.Source.Attributes().Rename) > 0 || f != nil && !f.Escapes || e.Qualifier.Folds
}
