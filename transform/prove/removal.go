package prove

import (
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Proof 6: proveRemovalOrder shows that all changes of a row that a removal may delete have an
// order, and marks the plans of such rows as wipeable.
//
// `on_remove: row` deletes cells of other items, whatever version they have: Bigtable deletes a
// family whole, or a column in a range of times. So the sink must apply the removal in its place
// among the changes of the row. Only changes of one partition of one table have an order, because
// shards and tables are read independently of each other.
func proveRemovalOrder(sites []site) {
	for _, a := range sites {
		if !a.plan.WipesOnRemoval {
			continue
		}
		a.plan.Wipeable = true
		for _, b := range sites {
			if !tmpl.Overlap(a.plan.Row.Shape, b.plan.Row.Shape) {
				continue
			}
			b.plan.Wipeable = true
			if quiet(a, b) {
				continue
			}
			at := a.plan.Rule.Src.OnRemove
			switch {
			case a.draft != b.draft:
				a.draft.Problems.Errorf(at, "cascade", "on_remove: own; or begin the rows of the two tables with words of their "+
					"own",
					"removing an item would delete what %s wrote to the row later: changes of two tables have no order", b.nameFor(a))
			case !samePartition(a, b):
				a.draft.Problems.Errorf(at, "cascade", "on_remove: own; or begin both rows with the partition key, written alike",
					"removing an item would delete what %s wrote to the row later: changes of two partitions have no order, "+
						"and the rows do not determine the partition key", b.nameFor(a))
			}
		}
	}
}

// samePartition reports whether items that two plans map to the same row always have the same
// partition key.
func samePartition(a, b site) bool {
	attr := a.draft.Program.Table.Schema.Partition.Name
	if x, y := onlyValue(a.plan.Rule, attr), onlyValue(b.plan.Rule, attr); x != nil && y != nil {
		return *x == *y
	}
	if a.plan.Row.Ambiguity != "" || b.plan.Row.Ambiguity != "" {
		return false
	}
	known := tmpl.Common(a.plan.Row, b.plan.Row)
	return sameMeaning(a, b, attr, known) && len(a.missingOf(attr, known)) == 0 && len(b.missingOf(attr, known)) == 0
}

// onlyValue returns the only value of an attribute that the rule takes; nil when it takes several.
func onlyValue(r *ir.Rule, attr string) *string {
	for i := range r.Conditions {
		if r.Conditions[i].Attr == attr && r.Conditions[i].Equals != nil {
			return r.Conditions[i].Equals
		}
	}
	return nil
}
