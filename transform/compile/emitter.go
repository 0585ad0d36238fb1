package compile

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// encodings are the encodings by the value of `as`.
var encodings = map[string]ir.Encoding{
	"": encode.Natural, "natural": encode.Natural, "text": encode.Text, "raw": encode.Raw, "decimal": encode.Decimal,
	"int64": encode.Int64, "float64": encode.Float64, "bool1": encode.Bool1, "json": encode.JSON,
	"dynamo_json": encode.DynamoJSON, "protobuf": encode.Protobuf, "google": encode.Google,
}

// variables are the template variables that a qualifier may use, by the kind of source.
var variables = map[string][]int{
	"attr":  {tmpl.VarAttr, tmpl.VarPath, tmpl.VarType},
	"attrs": {tmpl.VarAttr, tmpl.VarPath, tmpl.VarType},
	"map":   {tmpl.VarKey, tmpl.VarType},
	"set":   {tmpl.VarMember},
	"list":  {tmpl.VarI, tmpl.VarType},
}

// emitter compiles an entry under `cells`; nil when it has no target or its templates do not
// compile.
func (c *compiler) emitter(r *ir.Rule, src *lang.Emitter, segments problem.Text) *ir.Emitter {
	f, qualifier, ok := c.Target(src.To)
	if !ok {
		return nil
	}
	e := &ir.Emitter{Entry: src, Family: f, Values: c.values(src, f)}
	e.Shared = src.Collisions.Set() || r.Src.Collisions.Set()
	e.Time = ir.CellTime{Missing: src.TSMissing.S, Siblings: src.CellID.S == "ts"}
	e.Source = c.source(src)
	if d, ok := e.Source.(*ir.Document); ok {
		e.RawJSON = d.Format == "raw"
	}
	env := c.env(r, segments)
	env.Vars, env.Empty = variables[src.Kind], true
	if e.Versions() {
		env.Vars = nil
	}
	var err error
	if e.Qualifier, err = tmpl.New(qualifier, env); err != nil {
		c.Problems.Errorf(src.To, "template", "", "%s", err.Error())
		return nil
	}
	e.NameOnly = qualifier == "{attr}" && e.Qualifier.Vars[tmpl.VarAttr] // otherwise {attr} is a capture or an attribute
	e.PerName = perName(e, qualifier, env)
	if src.TS.Set() {
		env.Vars, env.Segments = nil, tmpl.SegRaw
		if e.Time.Template, err = tmpl.New(src.TS.S, env); err != nil {
			c.Problems.Errorf(src.TS, "template", "", "%s", err.Error())
			return nil
		}
		e.Time.Template.AsNumber()
	}
	e.Timed = e.Time.Template != nil || e.Versions()
	c.fallback(e, src)
	c.otherwise(r, e, segments)
	e.FromKey = columnsFromKey(e)
	c.checkEmitter(e)
	c.checkColumns(e)
	return e
}

// perName returns a column template for each attribute that the author named, with the name in
// place of {attr}, so that proofs have the exact text. It returns nil where the template might not
// write a name as it is.
func perName(e *ir.Emitter, qualifier string, env *tmpl.Env) []*tmpl.Template {
	before, after, found := strings.Cut(qualifier, "{attr}")
	plain := func(s string) bool {
		return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
	}
	if !found || e.Values.Flatten != nil || strings.Contains(after, "{attr}") || after != "" &&
		(plain(after[:1]) || after[0] == '{') {
		return nil
	}
	var out []*tmpl.Template
	for _, name := range e.Source.Listed() {
		name = e.Source.Attributes().Written(name)
		t, err := tmpl.New(before+name+after, env)
		if err != nil || !plain(name) || strings.Contains(name, env.Delim) {
			return nil
		}
		out = append(out, t)
	}
	return out
}

// values compiles the options of an entry for the bytes of its cells.
func (c *compiler) values(src *lang.Emitter, f *ir.FamilyRule) ir.Values {
	v := ir.Values{Encode: encodings[src.As.S]}
	null := src.Null.S
	if null == "" {
		null = c.Mapping.Null.S
	}
	v.NullEmpty = null == "empty"
	if f.Aggregate == "hll" && src.As.S != "int64" {
		v.Encode = encode.Distinct(v.Encode)
	}
	if src.Flatten.Set() {
		v.Flatten = &ir.Flatten{Joiner: src.Join.S, Escapes: src.As.S != "google"}
		if v.Flatten.Joiner == "" {
			v.Flatten.Joiner = "."
		}
	}
	return v
}

// source compiles the kind of source that an entry has.
func (c *compiler) source(src *lang.Emitter) ir.Source {
	name := src.Name.S
	switch src.Kind {
	case "attr":
		return ir.NewAttr(name)
	case "attrs":
		return &ir.Attrs{Selected: c.attributes(src)}
	case "const":
		return &ir.Const{Value: c.constant(src.Name)}
	case "doc":
		s := &ir.Document{Format: src.Format.S, Selected: c.attributes(src)}
		if s.Format == "" {
			s.Format = "dynamo_json"
		}
		return s
	case "map":
		return &ir.Map{Members: ir.NewMembers("map", name)}
	case "list":
		return &ir.List{Members: ir.NewMembers("list", name), Versions: src.Mode.S == "versions"}
	}
	value := src.Value
	if !value.Set() {
		value = text("0x00")
	}
	return &ir.Set{Members: ir.NewMembers("set", name), Value: c.constant(value)}
}

// attributes compiles a list of attributes or a wildcard.
func (c *compiler) attributes(src *lang.Emitter) ir.Attributes {
	a := ir.Attributes{StripGlobal: c.Program.Table.StripGlobal}
	for _, n := range src.Names {
		a.Names = append(a.Names, n.S)
	}
	slices.Sort(a.Names)
	if len(src.Except) > 0 {
		a.Except = map[string]bool{}
	}
	for _, x := range src.Except {
		a.Except[x.S] = true
	}
	if len(src.Rename) > 0 {
		a.Rename = map[string]string{}
	}
	for _, p := range src.Rename {
		a.Rename[p.Name] = p.Value.S
	}
	return a
}

// constant reads the value of `const` and `set` cells: text, or bytes as 0x….
func (c *compiler) constant(t problem.Text) []byte {
	b, ok := literalBytes(t.S)
	if !ok {
		c.Problems.Errorf(t, "value", "0x and pairs of hex digits, or plain text", "%q is not hex", t.S)
	}
	return b
}

// fallback compiles the family for numbers that do not fit.
func (c *compiler) fallback(e *ir.Emitter, src *lang.Emitter) {
	if !src.Fallback.Set() {
		return
	}
	if e.Fallback = c.Family(src.Fallback.S, src.Fallback); e.Fallback == e.Family {
		c.Problems.Errorf(src.Fallback, "fallback", "name another family: a column of 8-byte integers must hold nothing else",
			"the fallback is the column's own family")
	}
}

// otherwise compiles what becomes of values that a collection's source cannot expand: they are
// refused, skipped, or written to a column by an emitter of their own.
func (c *compiler) otherwise(r *ir.Rule, e *ir.Emitter, segments problem.Text) {
	s, ok := e.Source.(interface{ Others() *ir.Otherwise })
	to := e.Entry.Otherwise
	if !ok || to.S == "" || to.S == "refuse" {
		return
	}
	if to.S == "skip" {
		s.Others().Skip = true
		return
	}
	f, qualifier, ok := c.Target(to)
	if !ok {
		return
	}
	env := c.env(r, segments)
	env.Empty = true
	column, err := tmpl.New(qualifier, env)
	if err != nil {
		c.Problems.Errorf(to, "template", "", "%s", err.Error())
		return
	}
	s.Others().Emitter = &ir.Emitter{
		Entry: e.Entry, Source: ir.NewAttr(e.Entry.Name.S), Family: f, Qualifier: column, Time: e.Time, Timed: e.Timed,
		Shared: e.Shared,
		Values: ir.Values{Encode: encode.Natural, NullEmpty: e.Values.NullEmpty},
	}
}

// columnsFromKey reports whether the emitter's columns are known from the item's key, whatever the
// item holds.
func columnsFromKey(e *ir.Emitter) bool {
	_, several := e.Source.Variable()
	if several && e.Source.Listed() == nil || e.Values.Flatten != nil || !e.Qualifier.FromKey || e.Otherwise() != nil ||
		e.Qualifier.Vars[tmpl.VarType] {
		return false
	}
	return !e.Time.Siblings || (e.Time.Template != nil && e.Time.Template.FromKey)
}
