package lint

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// lintPersonal refuses personal data in row keys and column names, because these reach logs and
// monitoring.
func (c *linter) lintPersonal(pl *ir.Plan) {
	c.personal(*pl.Src, pl.Row, nil)
	for _, e := range pl.Emitters {
		c.personal(e.Entry.To, e.Qualifier, e)
		if o := e.Otherwise(); o != nil {
			c.personal(e.Entry.Otherwise, o.Qualifier, nil)
		}
		c.personalPaths(e)
	}
}

// personal refuses a template that shows an attribute listed under pii; e is its emitter, nil for
// row keys.
func (c *linter) personal(at problem.Text, t *tmpl.Template, e *ir.Emitter) {
	t.References(func(name string, capture tmpl.Capture, _ []string) {
		attr := name
		if capture.Attr != "" {
			attr = capture.Attr
		}
		if e != nil && capture.Name == "" && (name == "member" || name == "key") {
			attr = e.Entry.Name.S // {member} and {key} show parts of this attribute
		}
		if t.Exposed[name] && c.Personal[attr] {
			c.Problems.Errorf(at, "pii", "use a keyed hash: {"+name+"|hmac(secret,32)}",
				"%q shows attribute %q, which is listed under pii", at.S, attr)
		}
	})
}

// personalPaths refuses personal data in maps with keys that become column names. For a list or
// wildcard of attributes it only warns, because the mapping does not state which of them are maps.
func (c *linter) personalPaths(e *ir.Emitter) {
	if e.Values.Flatten == nil || !e.Qualifier.Exposed[tmpl.VarNames[tmpl.VarPath]] || !e.Qualifier.Vars[tmpl.VarPath] {
		return
	}
	_, one := e.Source.(*ir.Attr)
	_, several := e.Source.(*ir.Attrs)
	for _, name := range c.Mapping.PII {
		switch {
		case one && e.Holds(name.S):
			c.Problems.Errorf(e.Entry.To, "pii", "write it as one cell: remove `flatten`",
				"%q shows the keys of %q, which is listed under pii", e.Entry.To.S, name.S)
		case several && e.Holds(name.S):
			c.Problems.Warnf(e.Entry.To, "pii",
				"leave it out here, except: ["+name.S+"], and write it as one cell: {attr: "+name.S+", …}; if it is not a map: "+
					"acknowledged: [pii]", "if %q is a map, %q shows its keys; it is listed under pii", name.S, e.Entry.To.S)
		}
	}
}

// personalView refuses views with row keys that show the value of an attribute.
func (c *linter) personalView(x *lang.View) {
	for _, t := range x.Key {
		family, column, _ := strings.Cut(t.S, ":")
		for _, name := range c.Mapping.PII {
			if !slices.ContainsFunc(c.Program.Rules, func(r *ir.Rule) bool { return shows(r, family, column, name.S) }) {
				continue
			}
			c.Problems.Errorf(t, "pii",
				"a view's rows are found by the value itself: use an index row with {"+name.S+"|hmac(secret,32)}",
				"the view's row keys show attribute %q, which is listed under pii", name.S)
		}
	}
}

// shows reports whether a rule may write the value of an attribute into a column.
func shows(r *ir.Rule, family, column, attr string) bool {
	for _, pl := range r.Plans {
		for _, e := range pl.Emitters {
			if !e.Holds(attr) {
				continue
			}
			if e.InFamily(family) && canGive(e.ColumnOf(attr), column) {
				return true
			}
			if o := e.Otherwise(); o != nil && o.Family.Name == family && canGive(o.Qualifier.Source, column) {
				return true
			}
		}
	}
	return false
}

// canGive reports whether a column template can give a name; one that does not parse counts as any
// name.
func canGive(template, name string) bool {
	t, err := lang.ParseTemplate(template)
	return err != nil || serves(name, t, false)
}
