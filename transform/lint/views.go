package lint

import (
	"regexp"
	"slices"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

var viewName = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,127}$`)

// lintViews adds the views to the program, and checks their names and columns.
func (c *linter) lintViews() {
	seen := map[string]bool{}
	for i := range c.Mapping.Views {
		x := &c.Mapping.Views[i]
		v := ir.View{Name: x.At.S, Key: c.columns(x.Key), Columns: c.columns(x.Columns)}
		if !viewName.MatchString(v.Name) {
			c.Problems.Errorf(x.At, "views", "letters, digits, _ - and .", "%q is not a valid name for a view", v.Name)
		}
		if seen[v.Name] {
			c.Problems.Errorf(x.At, "duplicate", "give every view a name of its own", "two views are called %q", v.Name)
		}
		if len(x.Key) == 0 {
			c.Problems.Errorf(x.At, "views", "key: [\"family:column\"]",
				"view %q has no key: by which columns shall its rows be found?", v.Name)
		}
		c.personalView(x)
		seen[v.Name] = true
		c.Program.Views = append(c.Program.Views, v)
	}
}

// columns resolves the columns of a view, and refuses those that no rule writes, without a name, or
// of aggregates.
func (c *linter) columns(list []problem.Text) (out []ir.Column) {
	for _, t := range list {
		f, qualifier, ok := c.Target(t)
		switch {
		case !ok:
			continue
		case qualifier == "":
			c.Problems.Errorf(t, "views", "write \"family:column\"", "%q names no column", t.S)
		case f.Aggregate != "":
			c.Problems.Errorf(t, "views", "use a column of plain cells", "family %s holds aggregates", f.Name)
		case !slices.ContainsFunc(c.Program.Rules, func(r *ir.Rule) bool { return mayWrite(r, f, qualifier) }):
			c.Problems.Errorf(t, "views", "name a column as it stands in the table", "no rule writes column %q", t.S)
		}
		out = append(out, ir.Column{Family: f.Name, Qualifier: qualifier})
	}
	return out
}

// mayWrite reports whether a rule can write a column: one with a template counts as any column.
func mayWrite(r *ir.Rule, f *ir.FamilyRule, qualifier string) bool {
	return slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool {
		return slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool { return e.MayEmit(f, qualifier) })
	})
}
