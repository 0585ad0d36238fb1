package transform

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// `on_remove: row` deletes cells of other items, whatever version they have: Bigtable deletes a family whole, or a
// column in a range of times. So the sink must apply it in its place among the changes of the row, and only changes
// of one partition of one table have an order: shards are read independently of each other, tables even more so.

// cascades marks the rows of a target that a removal may take along, and refuses those whose items have no order.
func cascades(sites []site) {
	for _, a := range sites {
		if !a.pl.cascade {
			continue
		}
		a.pl.wipeable = true
		for _, b := range sites {
			if !tmpl.Overlap(a.pl.row.Shape, b.pl.row.Shape) {
				continue
			}
			b.pl.wipeable = true
			if a.c.broken || b.c.broken || b.pl.rule.dead || a.pl.rule.dead {
				continue
			}
			const hint = "on_remove: own"
			switch {
			case a.c != b.c:
				a.c.ps.Errorf(a.pl.rule.src.OnRemove, "cascade", hint+"; or begin the rows of the two tables with words of their own",
					"removing an item would delete what %s wrote to the row later: changes of two tables have no order", b.naming(a))
			case !samePartition(a, b):
				a.c.ps.Errorf(a.pl.rule.src.OnRemove, "cascade", hint+"; or begin both rows with the partition key, written alike",
					"removing an item would delete what %s wrote to the row later: changes of two partitions have no order, and the rows do not tell the partition key",
					b.naming(a))
			}
		}
	}
}

// samePartition says that items of which two plans make the same row have the same partition key.
func samePartition(a, b site) bool {
	attr := a.c.p.table.Schema.Partition.Name
	if x, y := a.pl.rule.fixed(attr), b.pl.rule.fixed(attr); x != nil && y != nil {
		return *x == *y
	}
	if a.pl.row.Ambig != "" || b.pl.row.Ambig != "" {
		return false
	}
	told := tmpl.Common(a.pl.row, b.pl.row)
	named := told[attr] && !slices.ContainsFunc(slices.Concat(a.pl.captures, b.pl.captures), func(c tmpl.Capture) bool { return c.Name == attr })
	if !named && !samePattern(a.pl.rule, b.pl.rule, attr) {
		return false
	}
	return len(a.pl.rule.withoutOf(a.pl, attr, told)) == 0 && len(b.pl.rule.withoutOf(b.pl, attr, told)) == 0
}

// fixed returns the only value of an attribute that the rule takes; nil when there are several.
func (r *rule) fixed(attr string) *string {
	for i := range r.conds {
		if r.conds[i].attr == attr && r.conds[i].equals != nil {
			return r.conds[i].equals
		}
	}
	return nil
}

// Wipes finds the rows of a change that a removal of another item may delete (`on_remove: row`). It is for one
// goroutine.
type Wipes struct {
	p *Program
	d change.Decoder
	x Eval
}

// Wipes returns nil when no rule has `on_remove: row`.
func (p *Program) Wipes() *Wipes {
	for _, r := range p.rules {
		if slices.ContainsFunc(r.plans, func(pl *plan) bool { return pl.cascade }) {
			return &Wipes{p: p, x: *p.NewEval()}
		}
	}
	return nil
}

// Rows calls f with each of these rows that the item was in before the change or is in after it. Rows may come
// twice; they are valid during the call. A change that cannot be read, or that the mapping refuses, has none.
func (w *Wipes) Rows(c *change.Change, f func(row []byte)) {
	w.d.Reset()
	w.x.Buf = w.x.Buf[:0]
	keys, err := w.d.Image(c.Keys)
	if err != nil {
		return
	}
	known, err := w.p.ruleOfKey(&w.x, keys)
	if err != nil || w.p.byKey && known == nil {
		return
	}
	if known != nil && known.wipesByKey() {
		w.rows(known, f)
		return
	}
	if c.Op == change.Remove && c.Old == nil && known != nil {
		w.rows(known, f)
	}
	for _, raw := range [][]byte{c.Old, c.New} {
		if raw != nil {
			w.image(raw, f)
		}
	}
}

// wipesByKey says whether the key alone gives the rule's rows that may be deleted.
func (r *rule) wipesByKey() bool {
	return !slices.ContainsFunc(r.plans, func(pl *plan) bool {
		return pl.wipeable && (!pl.row.FromKey || len(pl.conds) > 0 || pl.when != nil)
	})
}

func (w *Wipes) image(raw []byte, f func(row []byte)) {
	img, err := w.d.PartialImage(raw, w.p.wants)
	if err != nil {
		return
	}
	w.x.Scope.Image = img
	if r, err := w.p.pick(&w.x); err == nil && r != nil {
		w.rows(r, f)
	}
}

// rows evaluates the rows of the rule whose captures stand in the scope.
func (w *Wipes) rows(r *rule, f func(row []byte)) {
	x := &w.x
	for i, pl := range r.plans {
		if !pl.wipeable {
			continue
		}
		if i > 0 {
			if ok, err := matches(pl.conds, pl.when, x.Scope.Image, x.Captures); err != nil || !ok {
				continue
			}
		}
		key, err := pl.row.Append(x.Buf[:0], &x.Scope)
		if x.Buf = key; err == nil {
			f(key)
		}
	}
}
