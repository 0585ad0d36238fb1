package transform

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// identity checks that a cell in a shared row tells its item.
func (c *compiler) identity(r *rule, pl *plan, e *emitter) {
	if e.aggregate() || e.shared {
		return
	}
	for _, o := range e.outs() {
		told := []*tmpl.Template{pl.row, o.column}
		if e.siblings {
			told = append(told, e.ts)
		}
		missing := r.untold(c, pl, told...)
		if len(missing) == 0 {
			continue
		}
		hint := "add it to the column: to: \"" + o.family.Name + ":" + missing[0] + "/…\"; or to the row; or say `collisions: acknowledged`"
		if e.ts != nil && !e.siblings {
			hint = "if the cell's time tells the items apart, say `cell_id: ts`; or " + hint
		}
		for _, t := range told {
			if t.Ambig != "" {
				hint = t.Ambig
			}
		}
		at, place := o.src, "column"
		if e.siblings {
			at, place = e.src.TS, "time "+e.ts.Source+" of column"
			hint = e.timeTells(hint)
		}
		c.ps.Errorf(at, "not_injective", hint, "two items could write the same cell: row %q and %s %q do not tell %s", pl.row.Source, place, o.named(), strings.Join(missing, ", "))
		return
	}
}

// timeTells says how a cell time can tell its item.
func (e *emitter) timeTells(otherwise string) string {
	for _, f := range e.ts.Filters {
		if f == "iso_ms" {
			return "two texts may be one time: say `collisions: acknowledged` if they are not in your data, or take the time from a number of the key"
		}
	}
	if len(e.ts.Uses) == 1 && e.ts.Ambig == "" && len(e.ts.Filters) == 0 {
		return "as text a number has many forms: ts: \"" + strings.Replace(e.ts.Source, "}", "|int}", 1) + "\" takes one of them"
	}
	return otherwise
}

// strangers checks that one item's column of an emitter is never another item's column of another emitter: each
// template tells its item by itself, but not which template it was. They do when what tells the items stands at
// the beginning of both, in the same words.
func (c *compiler) strangers(r *rule, pl *plan, others []*emitter, e *emitter) {
	for _, o := range append(slices.Clone(others), e) {
		for _, a := range o.outs() {
			for _, b := range e.outs() {
				if a.column == b.column || a.family != b.family || o.shared || e.shared || o.aggregate() || !tmpl.Overlap(a.column.Shape, b.column.Shape) {
					continue
				}
				told := tmpl.Common(a.column, b.column)
				if pl.row.Ambig == "" {
					maps.Copy(told, pl.row.Covers)
				}
				if o.siblings && e.siblings && o.src.TS.S == e.src.TS.S && e.ts.Ambig == "" {
					maps.Copy(told, e.ts.Covers)
				}
				if missing := r.without(c, pl, told); len(missing) > 0 {
					hint := "begin both columns with " + strings.Join(missing, "/") + "/, give them different first words, or two families; or say `collisions: acknowledged`"
					if tmpl.Begins(a.column, b.column) {
						hint = "say where the first part ends: `segments: escape`, or a capture that cannot hold what follows it, as {x:seg} before the delimiter; or two families"
					}
					c.ps.Errorf(b.src, "not_injective", hint, "column %q of one item could be column %q of another: they do not tell %s in the same place", b.named(), a.named(), strings.Join(missing, ", "))
					return
				}
			}
		}
	}
}

// named is the column as its author would write it.
func (o out) named() string { return o.family.Name + ":" + o.column.Source }

// overlapping says whether two emitters of one row may give the same cell, so that every item must be
// compared; two fixed columns that are always the same are refused at once.
func (c *compiler) overlapping(pl *plan) (possible bool) {
	for i, a := range pl.emitters {
		if len(a.rename) > 0 || a.flatten && !a.escapes || a.qualifier.Folds {
			possible = true
		}
		for _, b := range pl.emitters[:i] {
			oa, ob, meet := meeting(a, b)
			if !meet || !a.split() && !b.split() && (apart(a, b) || apart(b, a)) {
				continue
			}
			possible = true
			fixed := len(oa.column.Uses) == 0 && len(ob.column.Uses) == 0
			if fixed && !a.aggregate() && (!a.siblings || !b.siblings) {
				c.ps.Errorf(oa.src, "collision", "give each its own column", "`%s` and `%s` both write %s", b.describe(), a.describe(), oa.named())
			}
		}
	}
	return possible
}

// split says that some values go elsewhere.
func (e *emitter) split() bool { return e.fallback != nil || e.other != nil }

// apart says that a wildcard over plain names never writes the fixed column of another emitter.
func apart(wild, fixed *emitter) bool {
	if wild.kind != "attrs" || !wild.bare || wild.flatten || len(wild.rename) > 0 {
		return false
	}
	if fixed.kind == "attrs" && fixed.bare && !fixed.flatten && len(fixed.rename) == 0 {
		return fixed.names != nil && !slices.ContainsFunc(fixed.names, wild.covering)
	}
	if len(fixed.qualifier.Uses) > 0 {
		return false
	}
	column, err := fixed.qualifier.Append(nil, &tmpl.Scope{}) // not its source: {{ is a brace
	return err == nil && !wild.covering(string(column))
}

func (e *emitter) covering(name string) bool {
	if e.names != nil {
		return slices.Contains(e.names, name)
	}
	return !e.except[name]
}
