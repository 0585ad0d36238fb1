package compile

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// rule compiles a rule with its index rows.
func (c *compiler) rule(src *lang.Rule) *ir.Rule {
	r := &ir.Rule{Name: src.At.S, Src: src, Drop: src.Drop, OnRemove: src.OnRemove.S, OnTTL: src.OnTTLExpiry.S}
	r.Conditions = c.conditions(r, src.Match)
	r.When = c.predicate(src.When)
	c.expiry(r)
	r.OwnCaptures = len(r.Captures)
	c.Program.MaxCaptures = max(c.Program.MaxCaptures, r.OwnCaptures)
	if src.Drop {
		return r
	}
	if pl := c.plan(r, "rule "+r.Name, &src.Row, src.Cells, src.Segments); pl != nil {
		pl.WipesOnRemoval = src.OnRemove.S == "row"
		c.sidecar(r, pl)
		r.Plans = append(r.Plans, pl)
	}
	for i := range src.Index {
		c.index(r, src, &src.Index[i])
	}
	return r
}

// index compiles an index row. The captures of its conditions follow the rule's own and are removed
// afterwards: the next index must not refer to them, because their slots may hold captures of
// another item.
func (c *compiler) index(r *ir.Rule, src *lang.Rule, x *lang.Index) {
	conds := c.conditions(r, x.Match)
	c.Program.MaxCaptures = max(c.Program.MaxCaptures, len(r.Captures))
	if pl := c.plan(r, "index "+x.At.S+" of rule "+r.Name, &x.Row, x.Cells, src.Segments); pl != nil {
		pl.Conditions, pl.When = conds, c.predicate(x.When)
		r.Plans = append(r.Plans, pl)
	}
	r.Captures = slices.Clip(r.Captures[:r.OwnCaptures])
}

// expiry compiles `on_ttl_expiry`: what becomes of items that TTL deletes.
func (c *compiler) expiry(r *ir.Rule) {
	if r.OnTTL == "" {
		r.OnTTL = c.Program.DefaultOnTTL()
	}
	if name, ok := strings.CutPrefix(r.OnTTL, "archive:"); ok {
		if r.ArchiveFamily = c.Family(name, r.Src.OnTTLExpiry); r.ArchiveFamily != nil {
			c.checkPlainFamily(r.ArchiveFamily, r.Src.OnTTLExpiry)
		}
		return
	}
	if words := []string{"delete", "keep", "archive"}; !slices.Contains(words, r.OnTTL) {
		c.Problems.Errorf(r.Src.OnTTLExpiry, "value", "one of: delete, keep, archive, archive:<family>",
			"on_ttl_expiry: %q is not known here", r.OnTTL)
	}
}

// predicate compiles a `when`; nil when it is not set or does not compile.
func (c *compiler) predicate(t problem.Text) *ir.Predicate {
	if !t.Set() {
		return nil
	}
	w, err := ir.NewPredicate(t.S)
	if err != nil {
		c.Problems.Errorf(t, "when", whenHint(err.Error()), "%s", firstLine(err.Error()))
		return nil
	}
	return w
}

// conditions compiles conditions; what their patterns capture is added to the rule's captures.
func (c *compiler) conditions(r *ir.Rule, list []lang.Condition) (out []ir.Condition) {
	for i := range list {
		src := &list[i]
		typ, key := c.KeyTypes()[src.At.S]
		cond := ir.Condition{Attr: src.At.S, Key: key, Type: src.Type.S, Exists: src.Exists}
		if src.Equals.Set() {
			cond.Equals = &src.Equals.S
		}
		for _, t := range src.In {
			cond.In = append(cond.In, t.S)
		}
		if src.Pattern.Set() {
			cond.Pattern = c.pattern(r, src.Pattern, tmpl.Capture{Attr: src.At.S, Key: key, Type: typ})
		}
		if key && cond.Exists != nil && !*cond.Exists {
			c.Problems.Errorf(src.At, "unreachable", "every item has its key attributes",
				"the rule can never match: %s is part of the primary key", src.At.S)
		}
		out = append(out, cond)
	}
	return out
}

// pattern compiles a pattern, and adds its captures to the rule's. Each of them is a copy of
// template, which describes the attribute, with a name and a kind.
func (c *compiler) pattern(r *ir.Rule, t problem.Text, template tmpl.Capture) *tmpl.Pattern {
	ast, err := lang.ParsePattern(t.S)
	if err != nil {
		c.Problems.Errorf(t, "pattern", "", "%s", err.Error())
		return nil
	}
	slots := map[string]int{}
	for i, have := range r.Captures {
		slots[have.Name] = i
	}
	for _, part := range ast {
		if part.Kind == lang.Literal {
			continue
		}
		_, have := slots[part.Text]
		switch {
		case part.Kind == lang.Same && !have:
			c.Problems.Errorf(t, "pattern", "captures are read from the top: partition key first",
				"{=%s}: nothing was captured as %s before", part.Text, part.Text)
			return nil
		case part.Kind == lang.Same:
		case have:
			c.Problems.Errorf(t, "pattern", "write {="+part.Text+"} where it must be the same again, or use another name",
				"{%s} is captured twice", part.Text)
		default:
			slots[part.Text] = len(r.Captures)
			capture := template
			capture.Name, capture.Kind, capture.All = part.Text, part.Kind, len(ast) == 1
			r.Captures = append(r.Captures, capture)
		}
	}
	return tmpl.NewPattern(ast, c.Delimiter(), func(name string) int { return slots[name] })
}

// plan compiles a row and its entries under `cells`; nil when it has no template that compiles.
func (c *compiler) plan(r *ir.Rule, name string, row *problem.Text, cells []lang.Emitter,
	segments problem.Text) *ir.Plan {
	if !row.Set() {
		return nil
	}
	pl := &ir.Plan{Name: name, Rule: r, Src: row, Captures: slices.Clone(r.Captures)}
	var err error
	if pl.Row, err = tmpl.New(row.S, c.env(r, segments)); err != nil {
		c.Problems.Errorf(*row, "template", "", "%s", err.Error())
	}
	for i := range cells { // also where the row does not compile, so that all errors of the rule are named at once
		if e := c.emitter(r, &cells[i], segments); e != nil {
			pl.Emitters = append(pl.Emitters, e)
		}
	}
	if err != nil {
		return nil
	}
	return pl
}

// sidecar adds the cell of attribute types to a rule's main row.
func (c *compiler) sidecar(r *ir.Rule, pl *ir.Plan) {
	t := r.Src.Types
	if !t.Set() {
		t = c.Mapping.Types
	}
	if !t.Set() {
		return
	}
	f, qualifier, ok := c.Target(t)
	if !ok {
		return
	}
	c.checkPlainFamily(f, t)
	e := &ir.Emitter{Entry: &lang.Emitter{At: t, To: t}, Source: &ir.Types{Beside: slices.Clone(pl.Emitters)}, Family: f,
		FromKey: true}
	env := c.env(r, r.Src.Segments)
	env.Attrs, env.Empty = false, true
	var err error
	if e.Qualifier, err = tmpl.New(qualifier, env); err != nil {
		c.Problems.Errorf(t, "template", "", "%s", err.Error())
		return
	}
	pl.Emitters = append(pl.Emitters, e)
}
