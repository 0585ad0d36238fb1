package lint

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// lintNames warns of references that are probably mistyped captures. Such a reference compiles,
// because an attribute of the item may have any name, but every item is then refused. A reference
// to an attribute that the rule names elsewhere, for example in its match, is taken as intended.
func (c *linter) lintNames(r *ir.Rule) {
	if slices.ContainsFunc(r.Src.Match, func(x lang.Condition) bool {
		_, err := lang.ParsePattern(x.Pattern.S)
		return err != nil
	}) {
		return // a pattern that does not parse: its captures are unknown
	}
	named := namedAttributes(r)
	for i, pl := range r.Plans {
		c.lintTemplate(r, named, *pl.Src, pl.Row, i == 0)
		for _, e := range pl.Emitters {
			c.lintTemplate(r, named, e.Entry.To, e.Qualifier, false)
			c.lintTemplate(r, named, e.Entry.TS, e.Time.Template, false)
			if o := e.Otherwise(); o != nil {
				c.lintTemplate(r, named, e.Entry.Otherwise, o.Qualifier, false)
			}
		}
	}
}

// lintTemplate checks the references of one template;
// needed means that items without its attributes are refused.
func (c *linter) lintTemplate(r *ir.Rule, named map[string]bool, at problem.Text, t *tmpl.Template, needed bool) {
	if t == nil {
		return
	}
	if strings.Contains(at.S, "${") || len(t.Uses) == 0 && strings.Contains(at.S, "$1") {
		c.Problems.Warnf(at, "attribute", "write {name} for what {name} captured in match", "%q: $ stands for itself", at.S)
	}
	known := append(slices.Sorted(maps.Keys(named)), c.KeyNames()...)
	for _, capture := range r.Captures {
		known = append(known, capture.Name)
	}
	for v, offered := range t.Vars {
		if offered {
			known = append(known, tmpl.VarNames[v])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Uses)) {
		if slices.Contains(known, name) {
			continue
		}
		hint := "say in the rule that items have it: match: {" + name + ": {exists: true}}"
		if near := problem.Mistyped(name, known); near != "" {
			c.Problems.Warnf(at, "attribute", "did you mean {"+near+"}? Or "+hint,
				"{%s} is not a capture: it is read as an attribute of the item", name)
		} else if needed {
			c.Problems.Warnf(at, "attribute", hint+"; and have a rule for items without",
				"the row key needs attribute %q: items without it are refused", name)
		}
	}
}

// namedAttributes returns the attributes that a rule names outside of its templates.
func namedAttributes(r *ir.Rule) map[string]bool {
	names := map[string]bool{}
	add := func(list ...problem.Text) {
		for _, t := range list {
			names[t.S] = true
		}
	}
	conditions := func(list []lang.Condition) {
		for i := range list {
			add(list[i].At)
		}
	}
	conditions(r.Src.Match)
	add(r.Src.Ignore...)
	for i := range r.Src.Index {
		conditions(r.Src.Index[i].Match)
	}
	for _, pl := range r.Plans {
		for _, e := range pl.Emitters {
			attrs := e.Source.Attributes()
			for _, name := range attrs.Names {
				names[name] = true
			}
			maps.Copy(names, attrs.Except)
			for from := range attrs.Rename {
				names[from] = true
			}
		}
	}
	addNamedByWhen(r, names)
	return names
}

// itemField matches the attributes in a `when` expression.
var itemField = regexp.MustCompile(`\bitem(?:\.(\w+)|\[["']([^"']+)["']\])`)

// addNamedByWhen adds the attributes in the `when` expressions of a rule and its indexes.
func addNamedByWhen(r *ir.Rule, names map[string]bool) {
	texts := []string{r.Src.When.S}
	for i := range r.Src.Index {
		texts = append(texts, r.Src.Index[i].When.S)
	}
	for _, text := range texts {
		for _, m := range itemField.FindAllStringSubmatch(text, -1) {
			names[m[1]+m[2]] = true
		}
	}
}
