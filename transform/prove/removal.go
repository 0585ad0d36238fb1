package prove

import (
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// `on_remove: row` deletes cells of other items, whatever version they have: Bigtable deletes a family whole, or a
// column in a range of times. So the sink must apply it in its place among the changes of the row, and only changes
// of one partition of one table have an order: shards are read independently of each other, tables even more so.

// removalsHaveOrder marks the rows of a target that a removal may take along, and refuses those whose items have no order.
func removalsHaveOrder(sites []site) {
	for _, a := range sites {
		if !a.pl.WipesOnRemoval {
			continue
		}
		a.pl.Wipeable = true
		for _, b := range sites {
			if !tmpl.Overlap(a.pl.Row.Shape, b.pl.Row.Shape) {
				continue
			}
			b.pl.Wipeable = true
			if a.c.Broken || b.c.Broken || b.pl.Rule.Unreachable || a.pl.Rule.Unreachable {
				continue
			}
			const hint = "on_remove: own"
			switch {
			case a.c != b.c:
				a.c.Problems.Errorf(a.pl.Rule.Src.OnRemove, "cascade", hint+"; or begin the rows of the two tables with words of their own",
					"removing an item would delete what %s wrote to the row later: changes of two tables have no order", b.naming(a))
			case !samePartition(a, b):
				a.c.Problems.Errorf(a.pl.Rule.Src.OnRemove, "cascade", hint+"; or begin both rows with the partition key, written alike",
					"removing an item would delete what %s wrote to the row later: changes of two partitions have no order, and the rows do not tell the partition key",
					b.naming(a))
			}
		}
	}
}

// samePartition says that items of which two plans make the same row have the same partition key.
func samePartition(a, b site) bool {
	attr := a.c.Program.Table.Schema.Partition.Name
	if x, y := fixed(a.pl.Rule, attr), fixed(b.pl.Rule, attr); x != nil && y != nil {
		return *x == *y
	}
	if a.pl.Row.Ambig != "" || b.pl.Row.Ambig != "" {
		return false
	}
	told := tmpl.Common(a.pl.Row, b.pl.Row)
	named := told[attr] && !slices.ContainsFunc(slices.Concat(a.pl.Captures, b.pl.Captures), func(c tmpl.Capture) bool { return c.Name == attr })
	if !named && !samePattern(a.pl.Rule, b.pl.Rule, attr) {
		return false
	}
	return len(missingPartsOf(a.pl.Rule, a.pl, attr, told)) == 0 && len(missingPartsOf(b.pl.Rule, b.pl, attr, told)) == 0
}

// fixed returns the only value of an attribute that the rule takes; nil when there are several.
func fixed(r *ir.Rule, attr string) *string {
	for i := range r.Conditions {
		if r.Conditions[i].Attr == attr && r.Conditions[i].Equals != nil {
			return r.Conditions[i].Equals
		}
	}
	return nil
}
