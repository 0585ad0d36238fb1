package transform

import (
	"encoding/hex"
	"fmt"
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
	missing := r.untold(c, pl.row)
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
func (r *rule) untold(c *compiler, ts ...*tmpl.Template) (missing []string) {
	told := map[string]bool{}
	for _, t := range ts {
		if t != nil && t.Ambig == "" {
			for name := range t.Covers {
				told[name] = true
			}
		}
	}
	for _, attr := range c.keyNames() {
		if told[attr] && !captureNamed(r, attr) {
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

func captureNamed(r *rule, name string) bool {
	return slices.ContainsFunc(r.captures, func(c tmpl.Capture) bool { return c.Name == name })
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
			if ea.family.Name == eb.family.Name && tmpl.Overlap(ea.qualifier.Shape, eb.qualifier.Shape) {
				collide(a, b, ea, eb)
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

func collide(a, b site, ea, eb *emitter) {
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
	b.c.ps.Errorf(eb.src.To, "shared_cell", hint, "%s (%s) and %s (%s) may write the same cell of family %s", b.pl.name, eb.src.To.S, a.naming(b), ea.src.To.S, ea.family.Name)
}

func shares(r, with *rule) bool {
	return slices.ContainsFunc(r.src.ShareWith, func(t lang.Text) bool { return t.S == with.name })
}

// classify gives a plan its class and checks that items sharing its row cannot share cells.
func (c *compiler) classify(pl *plan) {
	r := pl.rule
	for _, e := range pl.emitters {
		if f := e.family; !slices.Contains(pl.history, f.Name) && (e.historic(f) || e.siblings) && f.history {
			pl.history = append(pl.history, f.Name)
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
	for _, e := range pl.emitters {
		if !c.broken && !r.dead {
			c.identity(r, pl, e)
		}
	}
}

// identity checks that a cell in a shared row tells its item.
func (c *compiler) identity(r *rule, pl *plan, e *emitter) {
	if e.aggregate() || e.shared {
		return
	}
	told := []*tmpl.Template{pl.row, e.qualifier}
	if e.siblings {
		told = append(told, e.ts)
	}
	missing := r.untold(c, told...)
	if len(missing) == 0 {
		return
	}
	hint := "add it to the column: to: \"" + e.family.Name + ":" + missing[0] + "/…\"; or to the row; or say `collisions: acknowledged`"
	if e.ts != nil && !e.siblings {
		hint = "if the cell's time tells the items apart, say `cell_id: ts`; or " + hint
	}
	for _, t := range []*tmpl.Template{pl.row, e.qualifier} {
		if t.Ambig != "" {
			hint = t.Ambig
		}
	}
	c.ps.Errorf(e.src.To, "not_injective", hint, "two items could write the same cell: row %q and column %q do not tell %s", pl.row.Source, e.src.To.S, strings.Join(missing, ", "))
}

// overlapping says whether two emitters of one row may give the same cell, so that every item must be
// compared; two fixed columns that are always the same are refused at once.
func (c *compiler) overlapping(pl *plan) (possible bool) {
	for i, a := range pl.emitters {
		if len(a.rename) > 0 && a.names == nil || a.flatten && !a.escapes {
			possible = true
		}
		for _, b := range pl.emitters[:i] {
			if a.family != b.family || !tmpl.Overlap(a.qualifier.Shape, b.qualifier.Shape) || apart(a, b) || apart(b, a) {
				continue
			}
			possible = true
			if len(a.qualifier.Uses) == 0 && len(b.qualifier.Uses) == 0 && !a.timed() && !b.timed() && !a.aggregate() {
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
