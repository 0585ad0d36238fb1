package transform

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// lintPersonal refuses personal data in names of rows and columns: they reach logs and monitoring.
func (c *compiler) lintPersonal(pl *plan) {
	c.personal(*pl.src, pl.row, nil)
	for _, e := range pl.emitters {
		c.personal(e.src.To, e.qualifier, e)
		if e.other != nil {
			c.personal(e.src.Otherwise, e.other, nil)
		}
		c.personalPaths(e)
	}
}

func (c *compiler) personal(at lang.Text, t *tmpl.Template, e *emitter) {
	t.References(func(name string, capture tmpl.Capture, _ []string) {
		attr := name
		if capture.Attr != "" {
			attr = capture.Attr
		}
		if e != nil && capture.Name == "" && (name == "member" || name == "key") {
			attr = e.attr
		}
		if t.Exposed[name] && c.pii[attr] {
			c.ps.Errorf(at, "pii", "use a keyed hash: {"+name+"|hmac(secret,32)}", "%q shows attribute %q, which is listed under pii", at.S, attr)
		}
	})
}

// personalPaths looks for maps whose keys become column names. Whether an attribute of a wildcard is one, only its author
// knows.
func (c *compiler) personalPaths(e *emitter) {
	if !e.flatten || !e.qualifier.Exposed[tmpl.VarNames[tmpl.VarPath]] || !e.qualifier.Vars[tmpl.VarPath] {
		return
	}
	for _, name := range c.m.PII {
		switch {
		case e.kind == "attr" && e.attr == name.S:
			c.ps.Errorf(e.src.To, "pii", "write it as one cell: remove `flatten`", "%q shows the keys of %q, which is listed under pii", e.src.To.S, name.S)
		case e.kind == "attrs" && e.covering(name.S):
			c.ps.Warnf(e.src.To, "pii", "leave it out here, except: ["+name.S+"], and write it as one cell: {attr: "+name.S+", …}; if it is no map: acknowledged: [pii]", "if %q is a map, %q shows its keys; it is listed under pii", name.S, e.src.To.S)
		}
	}
}

// personalView refuses views whose row keys show the value of an attribute.
func (c *compiler) personalView(x *lang.View) {
	for _, t := range x.Key {
		family, column, _ := strings.Cut(t.S, ":")
		for _, name := range c.m.PII {
			if slices.ContainsFunc(c.p.rules, func(r *rule) bool { return r.shows(family, column, name.S) }) {
				c.ps.Errorf(t, "pii", "a view's rows are found by the value itself: use an index row with {"+name.S+"|hmac(secret,32)}", "the view's row keys show attribute %q, which is listed under pii", name.S)
			}
		}
	}
}

// shows says whether a rule may write the value of an attribute into a column.
func (r *rule) shows(family, column, attr string) bool {
	for _, pl := range r.plans {
		for _, e := range pl.emitters {
			if !e.holds(attr) {
				continue
			}
			if e.family.Name == family || e.fallback != nil && e.fallback.Name == family {
				if mayBe(e.columnOf(attr), column) {
					return true
				}
			}
			if e.otherFam != nil && e.otherFam.Name == family && mayBe(e.other.Source, column) {
				return true
			}
		}
	}
	return false
}

// holds says whether the emitter's cells hold the attribute's value, or a part of it.
func (e *emitter) holds(attr string) bool {
	switch e.kind {
	case "attr", "map", "set", "list":
		return e.attr == attr
	case "attrs", "doc":
		return e.covering(attr)
	}
	return false
}

// mayBe says whether a column template can give a name.
func mayBe(template, name string) bool {
	t, err := lang.ParseTemplate(template)
	return err != nil || serves(name, t, false)
}
