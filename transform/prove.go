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
	return slices.ContainsFunc(pl.emitters, (*emitter).aggregate)
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
		captured := slices.ContainsFunc(pl.captures, func(c tmpl.Capture) bool { return c.Name == attr })
		if told[attr] && !captured {
			continue
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
	if !tmpl.Overlap(a.pl.row.Shape, b.pl.row.Shape) {
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
			if oa, ob, ok := meeting(ea, eb); ok {
				collide(a, b, ea, eb, oa, ob)
			}
		}
	}
}

// meeting finds columns that two emitters may both write.
func meeting(a, b *emitter) (oa, ob out, ok bool) {
	for _, oa := range a.outs() {
		for _, ob := range b.outs() {
			if oa.family.Name == ob.family.Name && tmpl.Overlap(oa.column.Shape, ob.column.Shape) {
				return oa, ob, true
			}
		}
	}
	return oa, ob, false
}

// naming names a plan for somebody of another table.
func (s site) naming(from site) string {
	if s.c != from.c {
		return fmt.Sprintf("%s of table %s", s.pl.name, s.c.p.table.Source)
	}
	return s.pl.name
}

func collide(a, b site, ea, eb *emitter, oa, ob out) {
	if ea.aggregate() && eb.aggregate() {
		return
	}
	if a.c == b.c && (shares(a.pl.rule, b.pl.rule) || shares(b.pl.rule, a.pl.rule)) {
		ea.shared, eb.shared = true, true
		return
	}
	if ea.siblings && eb.siblings && ea.shared && eb.shared {
		return
	}
	if a.c.broken || b.c.broken || a.pl.rule.dead || b.pl.rule.dead {
		return
	}
	hint := "give one of them another family or a literal prefix in its column"
	if a.c == b.c && a.pl.rule != b.pl.rule {
		hint += "; if it cannot happen in your data, say so: may_share_cells_with: [" + a.pl.rule.name + "]"
	}
	if a.c != b.c {
		hint = "give the tables' rows distinct literal prefixes (row: \"orders#{…}\"), or targets of their own"
	}
	b.c.ps.Errorf(ob.src, "shared_cell", hint, "%s (%s) and %s (%s) may write the same cell of family %s", b.pl.name, ob.named(), a.naming(b), oa.named(), oa.family.Name)
}

func shares(r, with *rule) bool {
	return slices.ContainsFunc(r.src.ShareWith, func(t lang.Text) bool { return t.S == with.name })
}

// classify gives a plan its class and checks that items sharing its row cannot share cells.
func (c *compiler) classify(pl *plan) {
	r := pl.rule
	for _, e := range pl.emitters {
		for _, o := range e.outs() {
			if f := o.family; !slices.Contains(pl.history, f.Name) && (e.historic(f) || e.siblings) && f.history {
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
		if !e.fromKey && !e.aggregate() {
			pl.class = ClassD
			pl.why += "; the columns of `" + e.describe() + "` depend on the item"
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
		c.ps.Errorf(o.src, "not_injective", hint, "two items could write the same cell: row %q and column %q do not tell %s", pl.row.Source, o.named(), strings.Join(missing, ", "))
		return
	}
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
					c.ps.Errorf(b.src, "not_injective", "begin both columns with "+strings.Join(missing, "/")+"/, give them different first words, or two families; or say `collisions: acknowledged`",
						"column %q of one item could be column %q of another: they do not tell %s in the same place", b.named(), a.named(), strings.Join(missing, ", "))
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
			if !meet || len(a.outs())+len(b.outs()) == 2 && (apart(a, b) || apart(b, a)) {
				continue
			}
			possible = true
			fixed := len(oa.column.Uses) == 0 && len(ob.column.Uses) == 0 && oa.column == a.qualifier && ob.column == b.qualifier
			if fixed && !a.aggregate() && !(a.siblings && b.siblings) {
				c.ps.Errorf(a.src.To, "collision", "give each its own column", "`%s` and `%s` both write %s", b.describe(), a.describe(), a.src.To.S)
			}
		}
	}
	return possible
}

// apart says that a wildcard over plain names never writes the fixed column of another emitter.
func apart(wild, fixed *emitter) bool {
	if wild.kind != "attrs" || !wild.bare || wild.flatten || len(wild.rename) > 0 {
		return false
	}
	if fixed.kind == "attrs" && fixed.bare && !fixed.flatten && len(fixed.rename) == 0 {
		return fixed.names != nil && !slices.ContainsFunc(fixed.names, wild.covering)
	}
	return len(fixed.qualifier.Uses) == 0 && !wild.covering(fixed.qualifier.Source)
}

func (e *emitter) covering(name string) bool {
	if e.names != nil {
		return slices.Contains(e.names, name)
	}
	return !e.except[name]
}
