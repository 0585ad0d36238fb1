// Package edit compares two mappings of one table: what becomes of the rows and cells that the old
// one wrote, and whether a copy of the table is enough to make the target true for the new one.
package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Kind is how far a new mapping moves what an old one wrote.
type Kind string

// The kinds of a Change.
const (
	SameCells Kind = "same cells"
	SameRows  Kind = "other cells, same rows"
	RowsMove  Kind = "rows move"
)

// Change is the difference of two mappings of a table, for the cells of its items.
type Change struct {
	Kind       Kind
	Reasons    []string // in words: rule, row, column
	Acceptable bool     // a copy of the table makes the target true for the new mapping
	Why        string   // why it is not acceptable
}

// Diff compares two programs of one table. oldAll and newAll are the programs of all tables of the
// target, each from one compilation, because a row's class depends on all of them.
//
// A copy writes the rows that items have by the new mapping, and replaces them where the item owns
// its row. So it is enough where every row of both mappings is of class R, without anything in it
// that a second writing changes, and where no item loses a row: a row that an item is in no longer
// would remain.
func Diff(from, to *ir.Program, oldAll, newAll []*ir.Program) Change {
	d := differ{from: from, to: to}
	d.table()
	d.settings()
	d.rules()
	c := Change{Kind: SameCells, Reasons: append(d.moves, d.cells...)}
	switch {
	case len(d.moves) > 0:
		c.Kind = RowsMove
	case len(d.cells) > 0:
		c.Kind = SameRows
		d.kept()
	}
	c.Reasons = append(c.Reasons, d.others...)
	c.Why = d.refuse(c.Kind, oldAll, newAll)
	c.Acceptable = c.Why == ""
	return c
}

// differ collects the differences of two programs.
type differ struct {
	from, to *ir.Program
	moves    []string // what makes items leave rows
	cells    []string // what gives rows other cells, or further rows
	others   []string // what changes no cell of the items that exist
}

func (d *differ) move(format string, args ...any) {
	d.moves = append(d.moves, fmt.Sprintf(format, args...))
}
func (d *differ) cell(format string, args ...any) {
	d.cells = append(d.cells, fmt.Sprintf(format, args...))
}
func (d *differ) other(format string, args ...any) {
	d.others = append(d.others, fmt.Sprintf(format, args...))
}

// kept notes that a copy does not reach the rows of items that are gone.
func (d *differ) kept() {
	for _, r := range d.from.Rules {
		if r.OnTTL == "keep" && len(r.Plans) > 0 {
			d.other("rule %s: rows of expired items that are kept remain as the old mapping wrote them", r.Name)
		}
	}
}

// table compares what the programs were compiled for.
func (d *differ) table() {
	a, b := d.from.Table, d.to.Table
	if a.Pipeline != b.Pipeline || a.Source != b.Source {
		d.move("the rows are those of table %s in pipeline %s, not of %s in %s", b.Source, b.Pipeline, a.Source, a.Pipeline)
	}
	if a.Target != b.Target {
		d.move("the target is %s, not %s", b.Target, a.Target)
	}
	if !same(a.Schema, b.Schema) {
		d.move("the table's key has other attributes or types")
	}
	if a.StripGlobal != b.StripGlobal {
		d.cell("strip_global_attributes changes which attributes `attrs: all` writes")
	}
}

// settings compares the settings of a mapping that apply to all of its rules.
func (d *differ) settings() {
	a, b := d.from.Mapping, d.to.Mapping
	for _, s := range []struct{ name, old, now string }{
		{"delimiter", a.Delimiter.S, b.Delimiter.S}, {"segments", a.Segments.S, b.Segments.S},
	} {
		if s.old != s.now {
			d.move("%s changes from %q to %q: row keys and columns are written in another way", s.name, s.old, s.now)
		}
	}
	if a.Null.S != b.Null.S {
		d.cell("null changes from %q to %q", a.Null.S, b.Null.S)
	}
	if a.Types.S != b.Types.S {
		d.cell("the type sidecar changes from %q to %q", a.Types.S, b.Types.S)
	}
	if !same(d.from.SecretDigests, d.to.SecretDigests) {
		if keyed(d.from) || keyed(d.to) {
			d.move("a secret changes that row keys are hashed with")
		} else {
			d.cell("a secret changes that columns are hashed with")
		}
	}
	if d.from.SealsKeys != d.to.SealsKeys {
		d.other("the keys in guards are sealed or in clear, other than before, from each row's next write on")
	}
	for _, f := range d.from.FamilyRules {
		if g := family(d.to, f.Name); g == nil {
			d.cell("family %s is gone", f.Name)
		} else if f.Family != g.Family || f.Expires != g.Expires || f.Removed != g.Removed {
			d.cell("family %s keeps its cells in another way", f.Name)
		}
	}
}

// keyed reports whether a row key is hashed with a secret.
func keyed(p *ir.Program) bool {
	return slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool {
		return slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool { return slices.Contains(pl.Row.Filters, "hmac") })
	})
}

func family(p *ir.Program, name string) *ir.FamilyRule {
	if i := slices.IndexFunc(p.FamilyRules, func(f *ir.FamilyRule) bool { return f.Name == name }); i >= 0 {
		return p.FamilyRules[i]
	}
	return nil
}

// rules compares the rules, which take items in their order. A new rule must not take an item from
// a rule that has written it.
func (d *differ) rules() {
	next := 0 // in the old rules
	var added []*ir.Rule
	for _, r := range d.to.Rules {
		at := slices.IndexFunc(d.from.Rules[next:], func(o *ir.Rule) bool { return sameItems(o, r) })
		if at < 0 {
			added = append(added, r)
			continue
		}
		for _, gone := range d.from.Rules[next : next+at] {
			d.goneRule(gone)
		}
		old := d.from.Rules[next+at]
		next += at + 1
		d.addedRules(added, old)
		d.rule(old, r)
	}
	for _, gone := range d.from.Rules[next:] {
		d.goneRule(gone)
		d.addedRules(added, gone)
	}
	for _, r := range added {
		if !r.Drop {
			d.cell("rule %s is new: items that were refused or dropped before get rows", r.Name)
		}
	}
}

// goneRule notes that a rule takes no items any more.
func (d *differ) goneRule(r *ir.Rule) {
	if r.Drop {
		d.other("rule %s, which drops items, is gone or takes other items", r.Name)
		return
	}
	d.move("rule %s is gone, comes later, or takes other items: what it wrote would remain", r.Name)
}

// addedRules notes that new rules before an old one may take items from it.
func (d *differ) addedRules(added []*ir.Rule, old *ir.Rule) {
	for _, r := range added {
		if !old.Drop && !disjoint(r, old) {
			d.move("rule %s is new and may take items from rule %s: put it after that rule", r.Name, old.Name)
		}
	}
}

// sameItems reports whether two rules take the same items, as far as they are asked, and cut them
// in the same way.
func sameItems(a, b *ir.Rule) bool {
	return same(a.Src.Match, b.Src.Match) && a.Src.When.S == b.Src.When.S
}

// disjoint reports whether no item can meet the conditions of both rules.
func disjoint(a, b *ir.Rule) bool {
	for i := range a.Src.Match {
		for j := range b.Src.Match {
			x, y := &a.Src.Match[i], &b.Src.Match[j]
			if x.At.S == y.At.S && !tmpl.Overlap(shape(x), shape(y)) {
				return true
			}
		}
	}
	return false
}

// shape returns the shape of the texts that meet a condition.
func shape(c *lang.Condition) tmpl.Shape {
	anything := tmpl.State{Set: tmpl.Set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, Star: true}
	switch {
	case c.Equals.Set():
		return tmpl.Text(c.Equals.S)
	case !c.Pattern.Set():
		return tmpl.Shape{anything}
	}
	parts, err := lang.ParsePattern(c.Pattern.S)
	if err != nil {
		return tmpl.Shape{anything}
	}
	var out tmpl.Shape
	for _, p := range parts {
		if p.Kind == lang.Literal {
			out = append(out, tmpl.Text(p.Text)...)
		} else {
			out = append(out, anything)
		}
	}
	return out
}

// same compares by content, not by place in the file.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
