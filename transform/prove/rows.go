package prove

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// site is a row plan with the compiler that reports on it.
type site struct {
	c  *ir.Draft
	pl *ir.Plan
}

// All gives every row plan its class, and refuses mappings in which two items could write one cell.
// Class R needs a proof over all tables: the row's template tells the whole primary key, and no other rule,
// index or table can produce the row.
func All(cs []*ir.Draft) {
	byTarget := map[string][]site{}
	var targets []string
	for _, c := range cs {
		t := c.Program.Table.Target
		if _, seen := byTarget[t]; !seen {
			targets = append(targets, t)
		}
		for _, r := range c.Program.Rules {
			for _, pl := range r.Plans {
				rowTellsKey(c, pl)
				byTarget[t] = append(byTarget[t], site{c, pl})
			}
		}
	}
	familiesAgree(cs)
	for _, t := range targets {
		sites := byTarget[t]
		archiveFamiliesAlone(sites)
		for i := range sites {
			for j := range i {
				otherRowsDiffer(sites[j], sites[i])
			}
		}
		shareGuards(sites)
		removalsHaveOrder(sites)
		for _, s := range sites {
			classify(s.c, s.pl)
		}
	}
}

// rowTellsKey decides what a plan can be on its own: whether its row tells the primary key.
func rowTellsKey(c *ir.Draft, pl *ir.Plan) {
	r := pl.Rule
	missing := missingFrom(r, c, pl, pl.Row)
	switch {
	case pl.DeclaredOwner() == "cells":
		pl.Why = "the rule says `owns: cells`"
	case len(missing) > 0:
		pl.Why = "several items share the row: its key does not tell " + strings.Join(missing, ", ")
	case pl.WipesOnRemoval:
		pl.Why = "on_remove: row"
	case aggregates(pl):
		pl.Why = "an aggregate family holds what several items merged"
	default:
		pl.Exclusive = true
	}
}

func aggregates(pl *ir.Plan) bool {
	return slices.ContainsFunc(pl.Emitters, (*ir.Emitter).Aggregate)
}

// missingFrom names the parts of the primary key that cannot be told from what the templates give.
func missingFrom(r *ir.Rule, c *ir.Draft, pl *ir.Plan, ts ...*tmpl.Template) []string {
	told := map[string]bool{}
	for _, t := range ts {
		if t != nil && t.Ambig == "" {
			maps.Copy(told, t.Covers)
		}
	}
	return missingKeyParts(r, c, pl, told)
}

// missingKeyParts names the parts of the primary key that are not told by captures and attributes.
func missingKeyParts(r *ir.Rule, c *ir.Draft, pl *ir.Plan, told map[string]bool) (missing []string) {
	for _, attr := range c.KeyNames() {
		missing = append(missing, missingPartsOf(r, pl, attr, told)...)
	}
	return missing
}

// missingPartsOf names the parts of one key attribute that are not told by captures and attributes.
func missingPartsOf(r *ir.Rule, pl *ir.Plan, attr string, told map[string]bool) (missing []string) {
	captured := slices.ContainsFunc(pl.Captures, func(c tmpl.Capture) bool { return c.Name == attr })
	if told[attr] && !captured {
		return nil
	}
	fixed := false
	for i := range r.Conditions {
		fixed = fixed || r.Conditions[i].Attr == attr && (r.Conditions[i].Equals != nil || r.Conditions[i].Pattern != nil)
	}
	if !fixed {
		missing = append(missing, "{"+attr+"}")
	}
	for _, capture := range r.Captures[:r.OwnCaptures] {
		if capture.Attr == attr && !told[capture.Name] {
			missing = append(missing, "{"+capture.Name+"}")
		}
	}
	return missing
}

// otherRowsDiffer compares two plans of one target table: rows that both may produce belong to neither, and cells
// that both may write are refused.
func otherRowsDiffer(a, b site) {
	if !tmpl.Overlap(a.pl.Row.Shape, b.pl.Row.Shape) || sameItemOnly(a, b) {
		return
	}
	for _, s := range []struct{ mine, other site }{{a, b}, {b, a}} {
		if s.mine.pl.Exclusive {
			s.mine.pl.Exclusive = false
			s.mine.pl.Why = s.other.naming(s.mine) + " can produce the same row"
		}
	}
	for _, ea := range a.pl.Emitters {
		for _, eb := range b.pl.Emitters {
			if oa, ob, ok := ir.CommonColumn(ea, eb); ok {
				sharedCell(a, b, ea, eb, oa, ob)
			}
		}
	}
}

// sameItemOnly says that rows of two rules can be the same only for one and the same item, which one rule or the
// other takes: both rows tell the whole key, in the same words, and what they call by one name is the same.
func sameItemOnly(a, b site) bool {
	if a.c != b.c || a.pl.Rule == b.pl.Rule || a.pl.Row.Ambig != "" || b.pl.Row.Ambig != "" {
		return false
	}
	told := tmpl.Common(a.pl.Row, b.pl.Row)
	for _, attr := range a.c.KeyNames() {
		named := told[attr] && !slices.ContainsFunc(slices.Concat(a.pl.Captures, b.pl.Captures), func(c tmpl.Capture) bool { return c.Name == attr })
		if !named && !samePattern(a.pl.Rule, b.pl.Rule, attr) {
			return false
		}
	}
	return len(missingKeyParts(a.pl.Rule, a.c, a.pl, told)) == 0 && len(missingKeyParts(b.pl.Rule, b.c, b.pl, told)) == 0
}

// samePattern says that two rules match an attribute with the same pattern, so that its captures, or the text that it
// is, are the same.
func samePattern(r, s *ir.Rule, attr string) bool {
	pattern := func(r *ir.Rule) string {
		for i := range r.Src.Match {
			if r.Src.Match[i].At.S == attr {
				return r.Src.Match[i].Pattern.S
			}
		}
		return ""
	}
	return pattern(r) != "" && pattern(r) == pattern(s)
}

// shareGuards lets rows that may be the same have one guard: where one of them is shared, so is the other.
func shareGuards(sites []site) {
	for changed := true; changed; {
		changed = false
		for _, a := range sites {
			for _, b := range sites {
				if a.pl.Exclusive && !b.pl.Exclusive && sameItemOnly(a, b) && tmpl.Overlap(a.pl.Row.Shape, b.pl.Row.Shape) {
					a.pl.Exclusive, changed = false, true
					a.pl.Why = b.naming(a) + " can produce the same row, and is not alone there: " + b.pl.Why
				}
			}
		}
	}
}

// naming names a plan for somebody of another table.
func (s site) naming(from site) string {
	if s.c != from.c {
		return fmt.Sprintf("%s of table %s", s.pl.Name, s.c.Program.Table.Source)
	}
	return s.pl.Name
}

func sharedCell(a, b site, ea, eb *ir.Emitter, oa, ob ir.ColumnSet) {
	if ea.Aggregate() && eb.Aggregate() {
		return
	}
	if a.c == b.c && (ir.SharesWith(a.pl.Rule, b.pl.Rule) || ir.SharesWith(b.pl.Rule, a.pl.Rule)) {
		ea.Shared, eb.Shared = true, true
		return
	}
	if ea.Time.Siblings && eb.Time.Siblings && ea.Shared && eb.Shared {
		return
	}
	if a.c.Broken || b.c.Broken || a.pl.Rule.Unreachable || b.pl.Rule.Unreachable {
		return
	}
	hint := fmt.Sprintf("rows %q and %q can be the same: begin each with a word of its own, or keep the delimiter out of a part ({x:seg}, or segments: escape); or give the columns different first words or families", a.pl.Row.Source, b.pl.Row.Source)
	if a.pl.Row.Source == b.pl.Row.Source {
		hint = "give one of them another family or a literal prefix in its column"
	}
	if a.c == b.c && a.pl.Rule != b.pl.Rule {
		hint += "; if it cannot happen in your data, say so: may_share_cells_with: [" + a.pl.Rule.Name + "]"
	}
	if a.c != b.c {
		hint = "give the tables' rows distinct literal prefixes (row: \"orders#{…}\"), or targets of their own"
	}
	b.c.Problems.Errorf(ob.At, "shared_cell", hint, "%s (%s) and %s (%s) may write the same cell of family %s", b.pl.Name, ob.String(), a.naming(b), oa.String(), oa.Family.Name)
}

// classify gives a plan its class and checks that items sharing its row cannot share cells.
func classify(c *ir.Draft, pl *ir.Plan) {
	r := pl.Rule
	for _, e := range pl.Emitters {
		for _, o := range e.Columns() {
			if f := o.Family; !slices.Contains(pl.History, f.Name) && (e.KeepsVersions(f) || e.Time.Siblings) && f.History {
				pl.History = append(pl.History, f.Name)
			}
		}
	}
	pl.SparedFamilies = slices.Clip(pl.History)
	if r.ArchiveFamily != nil && pl == r.Plans[0] {
		pl.SparedFamilies = append(pl.SparedFamilies, r.ArchiveFamily.Name)
	}
	if pl.Exclusive {
		pl.Class, pl.Why = ir.ClassR, "the row's key tells the whole primary key and nothing else writes it"
		pl.CompareCells = cellsDiffer(c, pl)
		return
	}
	if pl.DeclaredOwner() == "row" && !c.Broken {
		c.Problems.Errorf(*pl.Src, "owns", "remove `owns: row`, or make the row's key tell the primary key", "`owns: row` cannot be proved: %s", pl.Why)
	}
	pl.Class = ir.ClassK
	for _, e := range pl.Emitters {
		if !e.FromKey && !e.Aggregate() {
			pl.Class = ir.ClassD
			pl.Why += "; the columns of `" + e.Describe() + "` depend on the item"
			break
		}
	}
	if pl.Class == ir.ClassK {
		pl.Why += "; all its columns are known from the key"
	}
	pl.CompareCells = cellsDiffer(c, pl)
	if !c.Broken && !r.Unreachable {
		for i, e := range pl.Emitters {
			cellTellsItem(c, r, pl, e)
			columnsTellEmitter(c, r, pl, pl.Emitters[:i], e)
		}
	}
}
