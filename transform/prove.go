package transform

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

func literalBytes(s string) ([]byte, bool) {
	h, isHex := strings.CutPrefix(s, "0x")
	if !isHex {
		return []byte(s), true
	}
	b, err := hex.DecodeString(h)
	return b, err == nil
}

// site is a row plan with the compiler that reports on it.
type site struct {
	c  *compiler
	pl *plan
}

// prove gives every row plan its class, and refuses mappings in which two items could write one cell.
// Class R needs a proof over all tables: the row's template tells the whole primary key, and no other rule,
// index or table can produce the row.
func prove(cs []*compiler) {
	byTarget := map[string][]site{}
	var targets []string
	for _, c := range cs {
		t := c.p.table.Target
		if _, seen := byTarget[t]; !seen {
			targets = append(targets, t)
		}
		for _, r := range c.p.rules {
			for _, pl := range r.plans {
				c.claim(pl)
				byTarget[t] = append(byTarget[t], site{c, pl})
			}
		}
	}
	agree(cs)
	for _, t := range targets {
		sites := byTarget[t]
		archives(sites)
		for i := range sites {
			for j := range i {
				rivals(sites[j], sites[i])
			}
		}
		level(sites)
		cascades(sites)
		for _, s := range sites {
			s.c.classify(s.pl)
		}
	}
}

// agree refuses families of one target table that two mappings declare differently.
func agree(cs []*compiler) {
	type owner struct {
		c *compiler
		f *family
	}
	seen := map[string]owner{}
	for _, c := range cs {
		for _, f := range c.p.families {
			k := c.p.table.Target + ":" + f.Name
			if o, dup := seen[k]; dup && o.f.Family != f.Family {
				c.ps.Errorf(f.at, "family", "declare it the same way, or give one of them another name", "family %s of target %s is declared differently by table %s", f.Name, c.p.table.Target, o.c.p.table.Source)
			} else if !dup {
				seen[k] = owner{c, f}
			}
		}
	}
}

// claim decides what a plan can be on its own: whether its row tells the primary key.
func (c *compiler) claim(pl *plan) {
	r := pl.rule
	missing := r.untold(c, pl, pl.row)
	switch {
	case pl.owns() == "cells":
		pl.why = "the rule says `owns: cells`"
	case len(missing) > 0:
		pl.why = "several items share the row: its key does not tell " + strings.Join(missing, ", ")
	case pl.cascade:
		pl.why = "on_remove: row"
	case pl.aggregates():
		pl.why = "an aggregate family holds what several items merged"
	default:
		pl.exclusive = true
	}
}

func (pl *plan) aggregates() bool {
	return slices.ContainsFunc(pl.emitters, (*Emitter).Aggregate)
}

// owns is what the author said about the row.
func (pl *plan) owns() string {
	if pl == pl.rule.plans[0] {
		return pl.rule.src.Owns.S
	}
	for i := range pl.rule.src.Index {
		if x := &pl.rule.src.Index[i]; &x.Row == pl.src {
			return x.Owns.S
		}
	}
	return ""
}

// untold names the parts of the primary key that cannot be told from what the templates give.
func (r *rule) untold(c *compiler, pl *plan, ts ...*tmpl.Template) []string {
	told := map[string]bool{}
	for _, t := range ts {
		if t != nil && t.Ambig == "" {
			maps.Copy(told, t.Covers)
		}
	}
	return r.without(c, pl, told)
}

// without names the parts of the primary key that are not told by captures and attributes.
func (r *rule) without(c *compiler, pl *plan, told map[string]bool) (missing []string) {
	for _, attr := range c.keyNames() {
		missing = append(missing, r.withoutOf(pl, attr, told)...)
	}
	return missing
}

// withoutOf names the parts of one key attribute that are not told by captures and attributes.
func (r *rule) withoutOf(pl *plan, attr string, told map[string]bool) (missing []string) {
	captured := slices.ContainsFunc(pl.captures, func(c tmpl.Capture) bool { return c.Name == attr })
	if told[attr] && !captured {
		return nil
	}
	fixed := false
	for i := range r.conds {
		fixed = fixed || r.conds[i].attr == attr && (r.conds[i].equals != nil || r.conds[i].pattern != nil)
	}
	if !fixed {
		missing = append(missing, "{"+attr+"}")
	}
	for _, capture := range r.captures[:r.own] {
		if capture.Attr == attr && !told[capture.Name] {
			missing = append(missing, "{"+capture.Name+"}")
		}
	}
	return missing
}

func (c *compiler) keyNames() []string {
	s := c.p.table.Schema
	if s.Sort == nil {
		return []string{s.Partition.Name}
	}
	return []string{s.Partition.Name, s.Sort.Name}
}

// rivals compares two plans of one target table: rows that both may produce belong to neither, and cells
// that both may write are refused.
func rivals(a, b site) {
	if !tmpl.Overlap(a.pl.row.Shape, b.pl.row.Shape) || alternatives(a, b) {
		return
	}
	for _, s := range []struct{ mine, other site }{{a, b}, {b, a}} {
		if s.mine.pl.exclusive {
			s.mine.pl.exclusive = false
			s.mine.pl.why = s.other.naming(s.mine) + " can produce the same row"
		}
	}
	for _, ea := range a.pl.emitters {
		for _, eb := range b.pl.emitters {
			if oa, ob, ok := CommonColumn(ea, eb); ok {
				collide(a, b, ea, eb, oa, ob)
			}
		}
	}
}

// alternatives says that rows of two rules can be the same only for one and the same item, which one rule or the
// other takes: both rows tell the whole key, in the same words, and what they call by one name is the same.
func alternatives(a, b site) bool {
	if a.c != b.c || a.pl.rule == b.pl.rule || a.pl.row.Ambig != "" || b.pl.row.Ambig != "" {
		return false
	}
	told := tmpl.Common(a.pl.row, b.pl.row)
	for _, attr := range a.c.keyNames() {
		named := told[attr] && !slices.ContainsFunc(slices.Concat(a.pl.captures, b.pl.captures), func(c tmpl.Capture) bool { return c.Name == attr })
		if !named && !samePattern(a.pl.rule, b.pl.rule, attr) {
			return false
		}
	}
	return len(a.pl.rule.without(a.c, a.pl, told)) == 0 && len(b.pl.rule.without(b.c, b.pl, told)) == 0
}

// samePattern says that two rules match an attribute with the same pattern, so that its captures, or the text that it
// is, are the same.
func samePattern(r, s *rule, attr string) bool {
	pattern := func(r *rule) string {
		for i := range r.src.Match {
			if r.src.Match[i].At.S == attr {
				return r.src.Match[i].Pattern.S
			}
		}
		return ""
	}
	return pattern(r) != "" && pattern(r) == pattern(s)
}

// level lets rows that may be the same have one guard: where one of them is shared, so is the other.
func level(sites []site) {
	for changed := true; changed; {
		changed = false
		for _, a := range sites {
			for _, b := range sites {
				if a.pl.exclusive && !b.pl.exclusive && alternatives(a, b) && tmpl.Overlap(a.pl.row.Shape, b.pl.row.Shape) {
					a.pl.exclusive, changed = false, true
					a.pl.why = b.naming(a) + " can produce the same row, and is not alone there: " + b.pl.why
				}
			}
		}
	}
}

// naming names a plan for somebody of another table.
func (s site) naming(from site) string {
	if s.c != from.c {
		return fmt.Sprintf("%s of table %s", s.pl.name, s.c.p.table.Source)
	}
	return s.pl.name
}

func collide(a, b site, ea, eb *Emitter, oa, ob ColumnSet) {
	if ea.Aggregate() && eb.Aggregate() {
		return
	}
	if a.c == b.c && (shares(a.pl.rule, b.pl.rule) || shares(b.pl.rule, a.pl.rule)) {
		ea.Shared, eb.Shared = true, true
		return
	}
	if ea.Time.Siblings && eb.Time.Siblings && ea.Shared && eb.Shared {
		return
	}
	if a.c.broken || b.c.broken || a.pl.rule.dead || b.pl.rule.dead {
		return
	}
	hint := fmt.Sprintf("rows %q and %q can be the same: begin each with a word of its own, or keep the delimiter out of a part ({x:seg}, or segments: escape); or give the columns different first words or families", a.pl.row.Source, b.pl.row.Source)
	if a.pl.row.Source == b.pl.row.Source {
		hint = "give one of them another family or a literal prefix in its column"
	}
	if a.c == b.c && a.pl.rule != b.pl.rule {
		hint += "; if it cannot happen in your data, say so: may_share_cells_with: [" + a.pl.rule.name + "]"
	}
	if a.c != b.c {
		hint = "give the tables' rows distinct literal prefixes (row: \"orders#{…}\"), or targets of their own"
	}
	b.c.ps.Errorf(ob.At, "shared_cell", hint, "%s (%s) and %s (%s) may write the same cell of family %s", b.pl.name, ob.String(), a.naming(b), oa.String(), oa.Family.Name)
}

func shares(r, with *rule) bool {
	return slices.ContainsFunc(r.src.ShareWith, func(t lang.Text) bool { return t.S == with.name })
}

// classify gives a plan its class and checks that items sharing its row cannot share cells.
func (c *compiler) classify(pl *plan) {
	r := pl.rule
	for _, e := range pl.emitters {
		for _, o := range e.Columns() {
			if f := o.Family; !slices.Contains(pl.history, f.Name) && (e.KeepsVersions(f) || e.Time.Siblings) && f.history {
				pl.history = append(pl.history, f.Name)
			}
		}
	}
	pl.spared = slices.Clip(pl.history)
	if r.archive != nil && pl == r.plans[0] {
		pl.spared = append(pl.spared, r.archive.Name)
	}
	if pl.exclusive {
		pl.class, pl.why = ClassR, "the row's key tells the whole primary key and nothing else writes it"
		pl.collide = c.overlapping(pl)
		return
	}
	if pl.owns() == "row" && !c.broken {
		c.ps.Errorf(*pl.src, "owns", "remove `owns: row`, or make the row's key tell the primary key", "`owns: row` cannot be proved: %s", pl.why)
	}
	pl.class = ClassK
	for _, e := range pl.emitters {
		if !e.FromKey && !e.Aggregate() {
			pl.class = ClassD
			pl.why += "; the columns of `" + e.Describe() + "` depend on the item"
			break
		}
	}
	if pl.class == ClassK {
		pl.why += "; all its columns are known from the key"
	}
	pl.collide = c.overlapping(pl)
	if !c.broken && !r.dead {
		for i, e := range pl.emitters {
			c.identity(r, pl, e)
			c.strangers(r, pl, pl.emitters[:i], e)
		}
	}
}
