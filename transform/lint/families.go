package lint

import (
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// lintHistories refuses `on_remove: tombstone` beside `cell_id: ts`, where the versions of a column
// belong to several items, and warns of histories that no family keeps.
func (c *linter) lintHistories(r *ir.Rule) {
	kept := false
	for _, pl := range r.Plans {
		for _, e := range pl.Emitters {
			kept = kept || slices.ContainsFunc(e.Columns(), func(o ir.ColumnSet) bool { return e.KeepsVersions(o.Family) })
			if e.Time.Siblings && r.OnRemove == "tombstone" {
				c.Problems.Errorf(e.Entry.CellID, "cell_id", "on_remove: own",
					"`on_remove: tombstone` ends columns in an empty version, but with `cell_id: ts` the older versions are other "+
						"items")
			}
			f := e.Family
			if e.Time.Template != nil && !e.Time.Siblings && f.MaxVersions > 1 && !c.keepsSeveralTimes(f) {
				c.Problems.Warnf(e.Entry.TS, "history", "leave out `ts`; or `cell_id: ts` with `collisions: acknowledged` and "+
					"`removed: keep` in the family, if the times of one item's changes differ; or max_versions: 1",
					"family %s keeps %d versions, but an update replaces a cell with a time of its own: there will be one", f.Name,
					f.MaxVersions)
			}
		}
	}
	if r.OnRemove == "tombstone" && !kept && len(r.Plans) > 0 {
		c.Problems.Warnf(r.Src.OnRemove, "history", "max_versions: 2 or more in a family of the rule, or leave it out",
			"`on_remove: tombstone` ends histories, but the rule keeps none")
	}
}

// keepsSeveralTimes reports whether some emitter keeps cells of several times in one column of a
// family.
func (c *linter) keepsSeveralTimes(f *ir.FamilyRule) bool {
	return slices.ContainsFunc(c.Program.Rules, func(r *ir.Rule) bool {
		return slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool {
			return slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool {
				return e.Family == f &&
					(e.Time.Siblings || e.KeepsVersions(f))
			})
		})
	})
}

// FamilyLimit refuses more column families than a target table can have, over all mappings that
// write it.
func FamilyLimit(cs []*ir.Draft) {
	names := map[string]map[string]bool{}
	for _, c := range cs {
		t := c.Program.Table.Target
		if names[t] == nil {
			names[t] = map[string]bool{ir.LiveFamily: true, ir.DeadFamily: true}
		}
		for _, f := range c.Program.FamilyRules {
			names[t][f.Name] = true
		}
	}
	for _, c := range cs {
		n := len(names[c.Program.Table.Target])
		if n <= ir.MaxFamilies || len(c.Program.FamilyRules) == 0 {
			continue
		}
		c.Problems.Errorf(c.Program.FamilyRules[0].At, "families", "merge families; columns inside one family are cheap",
			"table %s would have %d families, Bigtable takes %d%s", c.Program.Table.Target, n, ir.MaxFamilies, writers(c, cs))
	}
}

// writers returns the part of a message that names the other tables that write the same target.
func writers(c *ir.Draft, cs []*ir.Draft) (text string) {
	for _, o := range cs {
		if o != c && o.Program.Table.Target == c.Program.Table.Target {
			text += ", also written from " + o.Program.Table.Source
		}
	}
	return text
}
