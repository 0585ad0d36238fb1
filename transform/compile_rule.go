package transform

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

func (c *compiler) rule(src *lang.Rule) *rule {
	r := &rule{name: src.At.S, src: src, drop: src.Drop, onRemove: src.OnRemove.S, onTTL: src.OnTTLExpiry.S}
	r.conds = c.conditions(r, src.Match)
	r.when = c.predicate(src.When)
	c.expiry(r)
	r.own = len(r.captures)
	c.p.caps = max(c.p.caps, r.own)
	if src.Drop {
		return r
	}
	if pl := c.plan(r, "rule "+r.name, &src.Row, src.Cells, src.Segments); pl != nil {
		pl.cascade = src.OnRemove.S == "row"
		c.sidecar(r, pl)
		r.plans = append(r.plans, pl)
	}
	for i := range src.Index {
		c.index(r, src, &src.Index[i])
	}
	return r
}

// index compiles a further row. What its conditions capture stands behind the rule's own captures, and is gone
// with it: the next index knows nothing of it, or it would see what another item left there.
func (c *compiler) index(r *rule, src *lang.Rule, x *lang.Index) {
	conds := c.conditions(r, x.Match)
	c.p.caps = max(c.p.caps, len(r.captures))
	if pl := c.plan(r, "index "+x.At.S+" of rule "+r.name, &x.Row, x.Cells, src.Segments); pl != nil {
		pl.conds, pl.when = conds, c.predicate(x.When)
		r.plans = append(r.plans, pl)
	}
	r.captures = slices.Clip(r.captures[:r.own])
}

func (c *compiler) expiry(r *rule) {
	if r.onTTL == "" {
		r.onTTL = c.p.onTTL()
	}
	if name, ok := strings.CutPrefix(r.onTTL, "archive:"); ok {
		if r.archive = c.family(name, r.src.OnTTLExpiry); r.archive != nil {
			c.plainFamily(r.archive, r.src.OnTTLExpiry)
		}
		return
	}
	if words := []string{"delete", "keep", "archive"}; !slices.Contains(words, r.onTTL) {
		c.ps.Errorf(r.src.OnTTLExpiry, "value", "one of: delete, keep, archive, archive:<family>", "on_ttl_expiry: %q is not known here", r.onTTL)
	}
}

func (c *compiler) predicate(t lang.Text) *predicate {
	if !t.Set() {
		return nil
	}
	w, err := newPredicate(t.S)
	if err != nil {
		c.ps.Errorf(t, "when", whenHint(err.Error()), "%s", firstLine(err.Error()))
		return nil
	}
	return w
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimPrefix(line, "ERROR: ")
}

func (c *compiler) conditions(r *rule, list []lang.Condition) (out []condition) {
	for i := range list {
		src := &list[i]
		typ, key := c.keyTypes()[src.At.S]
		cond := condition{attr: src.At.S, key: key, typ: src.Type.S, exists: src.Exists}
		if src.Equals.Set() {
			cond.equals = &src.Equals.S
		}
		for _, t := range src.In {
			cond.in = append(cond.in, t.S)
		}
		if src.Pattern.Set() {
			cond.pattern = c.pattern(r, src.Pattern, tmpl.Capture{Attr: src.At.S, Key: key, Type: typ})
		}
		if key && cond.exists != nil && !*cond.exists {
			c.ps.Errorf(src.At, "unreachable", "every item has its key attributes", "the rule can never match: %s is part of the primary key", src.At.S)
		}
		out = append(out, cond)
	}
	return out
}

func (c *compiler) pattern(r *rule, t lang.Text, of tmpl.Capture) *tmpl.Pattern {
	ast, err := lang.ParsePattern(t.S)
	if err != nil {
		c.ps.Errorf(t, "pattern", "", "%s", err.Error())
		return nil
	}
	known := map[string]int{}
	for i, have := range r.captures {
		known[have.Name] = i
	}
	for _, part := range ast {
		if part.Kind == lang.Literal {
			continue
		}
		_, have := known[part.Text]
		switch {
		case part.Kind == lang.Same && !have:
			c.ps.Errorf(t, "pattern", "captures are read from the top: partition key first", "{=%s}: nothing was captured as %s before", part.Text, part.Text)
			return nil
		case part.Kind == lang.Same:
		case have:
			c.ps.Errorf(t, "pattern", "write {="+part.Text+"} where it must be the same again, or use another name", "{%s} is captured twice", part.Text)
		default:
			known[part.Text] = len(r.captures)
			capture := of
			capture.Name, capture.Kind, capture.All = part.Text, part.Kind, len(ast) == 1
			r.captures = append(r.captures, capture)
		}
	}
	return tmpl.NewPattern(ast, c.delimiter(), func(name string) int { return known[name] })
}

func (c *compiler) plan(r *rule, name string, row *lang.Text, cells []lang.Emitter, segments lang.Text) *plan {
	if !row.Set() {
		return nil
	}
	pl := &plan{name: name, rule: r, src: row, captures: slices.Clone(r.captures)}
	var err error
	if pl.row, err = tmpl.New(row.S, c.env(r, segments)); err != nil {
		c.ps.Errorf(*row, "template", "", "%s", err.Error())
		return nil
	}
	for i := range cells {
		if e := c.emitter(r, &cells[i], segments); e != nil {
			pl.emitters = append(pl.emitters, e)
		}
	}
	return pl
}

// sidecar adds the cell of attribute types to a rule's main row.
func (c *compiler) sidecar(r *rule, pl *plan) {
	t := r.src.Types
	if !t.Set() {
		t = c.m.Types
	}
	if !t.Set() {
		return
	}
	f, qualifier, ok := c.target(t)
	if !ok {
		return
	}
	c.plainFamily(f, t)
	e := &Emitter{Entry: &lang.Emitter{At: t, To: t}, Source: &Types{slices.Clone(pl.emitters)}, Family: f, FromKey: true}
	env := c.env(r, r.src.Segments)
	env.Attrs, env.Empty = false, true
	var err error
	if e.Qualifier, err = tmpl.New(qualifier, env); err != nil {
		c.ps.Errorf(t, "template", "", "%s", err.Error())
		return
	}
	pl.emitters = append(pl.emitters, e)
}
