package lint

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// lintSilent reports what compiles and never does what its author meant: a name that falls through
// to an attribute of the item, or a text that stands for itself.
func (c *linter) lintSilent(r *ir.Rule) {
	named := namedAttributes(r)
	for _, pl := range r.Plans {
		c.lintVariables(pl, named, *pl.Src, pl.Row)
		for _, e := range pl.Emitters {
			c.lintVariables(pl, named, e.Entry.To, e.Qualifier)
			c.lintVariables(pl, named, e.Entry.TS, e.Time.Template)
			c.lintEntry(r, e)
		}
	}
	for i := range r.Src.Ignore {
		if t := r.Src.Ignore[i]; t.S != "*" {
			c.lintStar(t)
		}
	}
}

// sourceVariables are the variables of sources that are no usual name of an attribute.
var sourceVariables = []string{"attr", "path", "member"}

// lintVariables reports the variable of a source in a template that has none: it is read as an
// attribute of that name. {member} is refused, because it is meant to be the member of a set.
func (c *linter) lintVariables(pl *ir.Plan, named map[string]bool, at problem.Text, t *tmpl.Template) {
	if t == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(t.Uses)) {
		captured := slices.ContainsFunc(pl.Captures, func(x tmpl.Capture) bool { return x.Name == name })
		if captured || named[name] || c.Program.KeyType(name) != 0 || !slices.Contains(sourceVariables, name) ||
			t.Vars[slices.Index(tmpl.VarNames[:], name)] {
			continue
		}
		report, code := c.Problems.Warnf, "attribute"
		if name == "member" {
			report, code = c.Problems.Errorf, "template"
		}
		report(at, code, "it belongs to the column of an entry whose source has it; if items have such an attribute, "+
			"name it in match: {"+name+": {exists: true}}",
			"{%s} is read as an attribute of the item: neither rows nor this source have such a variable", name)
	}
}

// braces matches a reference as templates have it.
var braces = regexp.MustCompile(`\{(\w+)[^{}]*\}`)

// lintEntry warns of an entry that names a capture where attributes are meant, or an attribute with
// a star.
func (c *linter) lintEntry(r *ir.Rule, e *ir.Emitter) {
	captures := func(name string) bool {
		return slices.ContainsFunc(r.Captures, func(x tmpl.Capture) bool { return x.Name == name && x.Attr != name })
	}
	switch e.Entry.Kind {
	case "const":
		if m := braces.FindStringSubmatch(e.Entry.Name.S); m != nil {
			c.Problems.Warnf(e.Entry.Name, "attribute",
				"`attr:` copies an attribute; if the text is meant: acknowledged: [attribute]",
				"a constant is text as it stands: %s is not replaced", m[0])
		}
	case "attr":
		if name := e.Entry.Name.S; captures(name) {
			c.Problems.Warnf(e.Entry.Name, "attribute", "`attr` takes attributes of the item; if items have this one, "+
				"say it in match: {"+name+": {exists: true}}", "%q is a capture of the rule, and no attribute", name)
		}
	}
	for _, list := range [][]problem.Text{e.Entry.Names, e.Entry.Except} {
		for _, t := range list {
			c.lintStar(t)
		}
	}
}

// lintStar warns of a star in the name of an attribute.
func (c *linter) lintStar(t problem.Text) {
	if strings.Contains(t.S, "*") {
		c.Problems.Warnf(t, "attribute", "name each attribute, or take all: {attrs: all, except: [a, b]}",
			"a star stands for itself: %q is the name of one attribute", t.S)
	}
}
