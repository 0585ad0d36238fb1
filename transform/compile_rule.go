package transform

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/encode"
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
	e := &emitter{src: &lang.Emitter{At: t, To: t}, kind: "types", family: f, beside: slices.Clone(pl.emitters), fromKey: true}
	env := c.env(r, r.src.Segments)
	env.Attrs, env.Empty = false, true
	var err error
	if e.qualifier, err = tmpl.New(qualifier, env); err != nil {
		c.ps.Errorf(t, "template", "", "%s", err.Error())
		return
	}
	pl.emitters = append(pl.emitters, e)
}

var encodings = map[string]encoding{"": encode.Natural, "natural": encode.Natural, "text": encode.Text, "raw": encode.Raw, "decimal": encode.Decimal,
	"int64": encode.Int64, "float64": encode.Float64, "bool1": encode.Bool1, "json": encode.JSON, "dynamo_json": encode.DynamoJSON, "protobuf": encode.Protobuf, "google": encode.Google}

// variables that the qualifier of a source form may use, and the one that it must use.
var variables = map[string][]int{"attr": {tmpl.VarAttr, tmpl.VarPath, tmpl.VarType}, "attrs": {tmpl.VarAttr, tmpl.VarPath, tmpl.VarType},
	"map": {tmpl.VarKey, tmpl.VarType}, "set": {tmpl.VarMember}, "list": {tmpl.VarI, tmpl.VarType}}

func (c *compiler) emitter(r *rule, src *lang.Emitter, segments lang.Text) *emitter {
	f, qualifier, ok := c.target(src.To)
	if !ok {
		return nil
	}
	e := &emitter{src: src, kind: src.Kind, attr: src.Name.S, family: f, encode: encodings[src.As.S], missing: src.TSMissing.S, siblings: src.CellID.S == "ts",
		flatten: src.Flatten.Set(), joiner: src.Join.S, escapes: src.As.S != "google", format: src.Format.S, versions: src.Mode.S == "versions", otherwise: src.Otherwise.S}
	e.shared = src.Collisions.Set() || r.src.Collisions.Set()
	null := src.Null.S
	if null == "" {
		null = c.m.Null.S
	}
	e.nullEmpty = null == "empty"
	if f.Aggregate == "hll" && src.As.S != "int64" {
		e.encode = encode.Distinct(e.encode)
	}
	if e.joiner == "" {
		e.joiner = "."
	}
	c.attributes(e, src)
	c.constants(e, src)
	env := c.env(r, segments)
	env.Vars, env.Empty = variables[src.Kind], true
	if e.versions {
		env.Vars = nil
	}
	var err error
	if e.qualifier, err = tmpl.New(qualifier, env); err != nil {
		c.ps.Errorf(src.To, "template", "", "%s", err.Error())
		return nil
	}
	e.bare = qualifier == "{attr}"
	e.spelled = e.spell(qualifier, env)
	if src.TS.Set() {
		env.Vars, env.Segments = nil, tmpl.SegRaw
		if e.ts, err = tmpl.New(src.TS.S, env); err != nil {
			c.ps.Errorf(src.TS, "template", "", "%s", err.Error())
			return nil
		}
		e.ts.AsNumber()
	}
	c.fallbacks(r, e, src, segments)
	e.fromKey = e.keyed()
	c.checkEmitter(e)
	c.checkColumns(e)
	return e
}

func (c *compiler) attributes(e *emitter, src *lang.Emitter) {
	for _, n := range src.Names {
		e.names = append(e.names, n.S)
	}
	slices.Sort(e.names)
	if len(src.Except) > 0 {
		e.except = map[string]bool{}
	}
	for _, x := range src.Except {
		e.except[x.S] = true
	}
	if len(src.Rename) > 0 {
		e.rename = map[string]string{}
	}
	for _, p := range src.Rename {
		e.rename[p.Name] = p.Value.S
	}
	if e.kind == "const" {
		e.attr = ""
	}
	if e.kind == "doc" && e.format == "" {
		e.format = "dynamo_json"
	}
}

// constants reads what const and set cells hold: text, or bytes as 0x….
func (c *compiler) constants(e *emitter, src *lang.Emitter) {
	t := src.Name
	switch {
	case e.kind == "set" && src.Value.Set():
		t = src.Value
	case e.kind == "set":
		t = text("0x00")
	case e.kind != "const":
		return
	}
	b, ok := literalBytes(t.S)
	if !ok {
		c.ps.Errorf(t, "value", "0x and pairs of hex digits, or plain text", "%q is not hex", t.S)
	}
	e.value = b
}

func (c *compiler) fallbacks(r *rule, e *emitter, src *lang.Emitter, segments lang.Text) {
	if src.Fallback.Set() {
		e.fallback = c.family(src.Fallback.S, src.Fallback)
		if e.fallback == e.family {
			c.ps.Errorf(src.Fallback, "fallback", "name another family: a column of 8-byte integers must hold nothing else", "the fallback is the column's own family")
		}
	}
	if e.otherwise == "" || e.otherwise == "refuse" || e.otherwise == "skip" {
		return
	}
	f, qualifier, ok := c.target(src.Otherwise)
	if !ok {
		return
	}
	env := c.env(r, segments)
	env.Empty = true
	other, err := tmpl.New(qualifier, env)
	if err != nil {
		c.ps.Errorf(src.Otherwise, "template", "", "%s", err.Error())
		return
	}
	e.otherFam, e.other = f, other
}

// keyed says whether the emitter's columns are known from the item's key, whatever the item holds.
func (e *emitter) keyed() bool {
	single := e.kind == "attr" || e.kind == "const" || e.kind == "doc" || (e.kind == "attrs" && e.names != nil) || e.versions
	if !single || e.flatten || !e.qualifier.FromKey || e.other != nil || e.qualifier.Vars[tmpl.VarType] {
		return false
	}
	return !e.siblings || (e.ts != nil && e.ts.FromKey)
}
