package edit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// rule compares two rules that take the same items.
func (d *differ) rule(a, b *ir.Rule) {
	switch {
	case a.Drop && b.Drop:
		return
	case a.Drop:
		d.cell("rule %s wrote nothing, and now writes rows", b.Name)
		return
	case b.Drop:
		d.move("rule %s drops its items now: the rows that they have would remain", b.Name)
		return
	}
	if x, y := a.Src.Row.S, b.Src.Row.S; x != y {
		d.move("rule %s: the row is %q, not %q", b.Name, y, x)
	}
	if x, y := a.Src.Segments.S, b.Src.Segments.S; x != y {
		d.move("rule %s: segments changes from %q to %q", b.Name, x, y)
	}
	if x, y := a.Src.Types.S, b.Src.Types.S; x != y {
		d.cell("rule %s: the type sidecar changes from %q to %q", b.Name, x, y)
	}
	d.emitters("rule "+b.Name, entries{a.Src.Cells, emittersOf(a, &a.Src.Row)},
		entries{b.Src.Cells, emittersOf(b, &b.Src.Row)})
	d.indexes(a, b)
	for _, s := range []struct{ name, old, now string }{
		{"on_remove", a.OnRemove, b.OnRemove}, {"on_ttl_expiry", a.OnTTL, b.OnTTL},
	} {
		if s.old != s.now {
			d.other("rule %s: %s changes from %q to %q, for removals from now on", b.Name, s.name, s.old, s.now)
		}
	}
}

// indexes compares the index rows of two rules.
func (d *differ) indexes(a, b *ir.Rule) {
	for i := range a.Src.Index {
		x := &a.Src.Index[i]
		j := slices.IndexFunc(b.Src.Index, func(y lang.Index) bool {
			return same(x.Match, y.Match) && x.When.S == y.When.S && x.Row.S == y.Row.S
		})
		if j < 0 {
			d.move("rule %s: index %s is gone, or has other rows or items: what it wrote would remain", b.Name, x.At.S)
			continue
		}
		y := &b.Src.Index[j]
		d.emitters(fmt.Sprintf("index %s of rule %s", x.At.S, b.Name), entries{x.Cells, emittersOf(a, &x.Row)},
			entries{y.Cells, emittersOf(b, &y.Row)})
	}
	for i := range b.Src.Index {
		y := &b.Src.Index[i]
		if !slices.ContainsFunc(a.Src.Index, func(x lang.Index) bool {
			return same(x.Match, y.Match) && x.When.S == y.When.S && x.Row.S == y.Row.S
		}) {
			d.cell("rule %s: index %s is new or has other rows", b.Name, y.At.S)
		}
	}
}

// entries are the entries under one `cells`, as written and as compiled.
type entries struct {
	list     []lang.Emitter
	compiled []*ir.Emitter
}

// emittersOf returns the compiled entries of the row that a rule or one of its indexes writes.
func emittersOf(r *ir.Rule, row *problem.Text) []*ir.Emitter {
	for i, pl := range r.Plans {
		if pl.Src == row || i == 0 && row == &r.Src.Row {
			return pl.Emitters
		}
	}
	return nil
}

// has reports whether there is the same entry.
func (x entries) has(e *lang.Emitter) bool {
	return slices.ContainsFunc(x.list, func(o lang.Emitter) bool { return same(&o, e) })
}

// to reports whether there is an entry with the same column.
func (x entries) to(column string) bool {
	return slices.ContainsFunc(x.list, func(o lang.Emitter) bool { return o.To.S == column })
}

// writersOf returns the entries that may write the column of an entry of other all the same: for
// all attributes, or as the place of values that do not fit. "" for none.
func (x entries) writersOf(other entries, e *lang.Emitter) string {
	at := slices.IndexFunc(other.compiled, func(o *ir.Emitter) bool { return same(o.Entry, e) })
	if at < 0 {
		return ""
	}
	of := other.compiled[at]
	var writers []string
	for _, o := range x.compiled {
		for _, c := range o.Columns() {
			meets := func(main ir.ColumnSet) bool {
				return main.Main && main.Family.Name == c.Family.Name && tmpl.Overlap(main.Column.Shape, c.Column.Shape)
			}
			if c.Main && (o.Avoids(of) || of.Avoids(o)) || !slices.ContainsFunc(of.Columns(), meets) {
				continue
			}
			text := "`" + o.Describe() + " → " + o.Entry.To.S + "`"
			if !c.Main {
				text += ", for values that do not fit"
			}
			writers = append(writers, text)
			break
		}
	}
	return strings.Join(writers, " and ")
}

// emitters compares the entries under `cells` regardless of their order.
func (d *differ) emitters(where string, a, b entries) {
	for i := range a.list {
		e := &a.list[i]
		if b.has(e) || b.to(e.To.S) {
			continue
		}
		switch by := b.writersOf(a, e); {
		case by == "":
			d.cell("%s: column %s is gone", where, e.To.S)
		case strings.Contains(e.To.S, "{"): // several columns, of which others may write some
			d.cell("%s: column %s is gone, except what %s may write", where, e.To.S, by)
		default:
			d.cell("%s: column %s is now written by %s", where, e.To.S, by)
		}
	}
	for i := range b.list {
		e := &b.list[i]
		switch {
		case a.has(e):
			continue
		case a.to(e.To.S):
			d.cell("%s: column %s is written in another way", where, e.To.S)
			continue
		}
		switch by := a.writersOf(b, e); {
		case by == "":
			d.cell("%s: column %s is new", where, e.To.S)
		case strings.Contains(e.To.S, "{"):
			d.cell("%s: column %s is new, except what %s may have written", where, e.To.S, by)
		default:
			d.cell("%s: column %s has an entry of its own now; before, %s may have written it", where, e.To.S, by)
		}
	}
}

// refuse returns why a copy is not enough; "" when it is.
func (d *differ) refuse(kind Kind, oldAll, newAll []*ir.Program) string {
	if kind == RowsMove {
		return "items leave rows, and a copy writes rows but clears none: " + d.moves[0]
	}
	if why := d.reclassed(oldAll, newAll); why != "" {
		return why
	}
	if kind == SameCells {
		return ""
	}
	for _, p := range []*ir.Program{d.from, d.to} {
		which := "the new"
		if p == d.from {
			which = "the old"
		}
		for _, r := range p.Rules {
			for _, pl := range r.Plans {
				if why := notReplaced(pl); why != "" {
					return fmt.Sprintf("by %s mapping %s %s", which, pl.Name, why)
				}
			}
		}
	}
	return d.lostFamilies()
}

// notReplaced returns why writing a row again from its item alone does not make it true; "" when it
// does.
func notReplaced(pl *ir.Plan) string {
	switch {
	case pl.Class != ir.ClassR:
		return "is of class " + pl.Class.Named() + ": a copy does not remove what other entries wrote (" + pl.Why + ")"
	case len(pl.History) > 0:
		return "keeps histories in family " + pl.History[0] + ": a copy would add a version to each"
	case pl.ReadToResync:
		return "has a family with max_age: a copy would begin the age of its cells anew"
	}
	return ""
}

// reclassed returns which row of any table of the target changes its class; "" when none does. The
// guard of a row of class R has another column than the guards of other classes, so the guard of
// the old class would no longer be found.
func (d *differ) reclassed(oldAll, newAll []*ir.Program) string {
	for _, a := range oldAll {
		for _, b := range newAll {
			if a.Table.Source != b.Table.Source || a.Table.Target != d.from.Table.Target {
				continue
			}
			for _, r := range b.Rules {
				i := slices.IndexFunc(a.Rules, func(o *ir.Rule) bool { return sameItems(o, r) })
				if i < 0 {
					continue
				}
				if why := reclassedRule(a.Rules[i], r); why != "" {
					return fmt.Sprintf("table %s: %s", b.Table.Source, why)
				}
			}
		}
	}
	return ""
}

func reclassedRule(a, b *ir.Rule) string {
	for _, y := range b.Plans {
		for _, x := range a.Plans {
			if x.Row.Source == y.Row.Source && x.Class != y.Class {
				return fmt.Sprintf("%s was of class %s and is of class %s now (%s)",
					y.Name, x.Class.Named(), y.Class.Named(), y.Why)
			}
		}
	}
	return ""
}

// lostFamilies returns which family would keep cells that nothing writes any more: where rows are
// not deleted as a whole, because archived items in them are spared, only families of the mapping
// are emptied.
func (d *differ) lostFamilies() string {
	spares := func(p *ir.Program) bool {
		return slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool { return r.ArchiveFamily != nil })
	}
	for _, f := range d.from.FamilyRules {
		if family(d.to, f.Name) == nil && (spares(d.from) || spares(d.to)) {
			return fmt.Sprintf(
				"family %s is gone, and rows with archived items are emptied only in families of the mapping", f.Name)
		}
	}
	return ""
}
