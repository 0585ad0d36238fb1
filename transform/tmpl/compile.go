package tmpl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// New compiles a template, together with its shape and with what follows from its texts.
func New(src string, env *Env) (*Template, error) {
	ast, err := lang.ParseTemplate(src)
	if err != nil {
		return nil, err
	}
	t := &Template{Source: src, Covers: map[string]bool{}, Uses: map[string]bool{}, Exposed: map[string]bool{},
		FromKey: true, captured: map[string]Capture{}}
	for i, part := range ast {
		o, shape, err := t.compile(part, env)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", src, err)
		}
		// A column of literal text alone has no parts to separate.
		if o.kind == srcLiteral && env.Segments == SegOrdered && (!env.Empty || len(ast) > 1) {
			o.lit = strings.ReplaceAll(o.lit, env.Delim, "\x00\x01")
			shape = Text(o.lit)
		}
		o.fixed = o.kind != srcLiteral && shape.fixed()
		if o.kind != srcLiteral && i < len(ast)-1 {
			shape = t.separate(&o, shape, ast[i+1], env)
		}
		o.bytes, o.shape = shape.bytes(), shape
		t.ops = append(t.ops, o)
		t.Shape = append(t.Shape, shape...)
	}
	return t, nil
}

// separate decides how the end of a reference that is not the last part is recognized, sets Ambig
// if it is not, and returns the shape of the reference with separators removed or escaped.
func (t *Template) separate(o *op, shape Shape, next lang.TemplatePart, env *Env) Shape {
	if shape.fixed() {
		return shape
	}
	if next.Literal == "" {
		t.Ambiguity = fmt.Sprintf("{%s} is followed by another reference without text between them", o.name)
		return shape
	}
	o.stop, o.mode, o.empty = next.Literal, env.Segments, env.Empty
	if o.mode == SegEscape && strings.Contains(Escaping, o.stop[:1]) {
		t.Ambiguity = fmt.Sprintf("with segments: escape, {%s} must not be followed by %q: escapes are made of it; use "+
			"another separator", o.name, o.stop[:1])
		return Shape{anyByte}
	}
	if o.mode == SegOrdered {
		if !strings.HasPrefix(next.Literal, env.Delim) {
			t.Ambiguity = fmt.Sprintf("with segments: ordered, {%s} must be followed by the delimiter %q", o.name, env.Delim)
		}
		return Shape{anyByte}
	}
	if o.mode == SegStrict && len(o.stop) > 1 {
		return shape
	}
	if o.mode == SegEscape {
		return shape.escaped(o.stop[0])
	}
	return shape.without(o.stop[0])
}

// compile compiles one part of the template, without the separation from the next.
func (t *Template) compile(part lang.TemplatePart, env *Env) (op, Shape, error) {
	if part.Name == "" {
		return op{kind: srcLiteral, lit: part.Literal, fromKey: true}, Text(part.Literal), nil
	}
	if part.Salt != nil {
		return t.compileSalt(part, env)
	}
	o, shape, err := t.reference(part.Name, env)
	if err != nil {
		return o, nil, err
	}
	injective, secret := true, false
	for _, step := range part.Filters {
		t.Filters = append(t.Filters, step.Name)
		secret = secret || step.Name == "hmac"
		f, err := compileFilter(step, env.Secrets)
		if err != nil {
			return o, nil, err
		}
		o.filters = append(o.filters, f)
		shape = f.shape(shape)
		injective = injective && f.injective
	}
	if !secret {
		t.Exposed[part.Name] = true
	}
	if injective && o.kind != srcVar {
		t.Covers[part.Name] = true
	}
	t.Lossy = t.Lossy || !injective && o.kind == srcVar
	return o, shape, nil
}

// reference resolves a name: a variable of the source, a capture, a key attribute, or an attribute
// of the item.
func (t *Template) reference(name string, env *Env) (op, Shape, error) {
	t.Uses[name] = true
	for _, v := range env.Vars {
		if VarNames[v] == name {
			if slices.ContainsFunc(env.Captures, func(c Capture) bool { return c.Name == name }) {
				return op{}, nil, fmt.Errorf("{%s} is a capture of the rule and a variable of this source; give the capture "+
					"another name", name)
			}
			t.Vars[v] = true
			shape := Shape{anyByte}
			switch v {
			case VarI:
				shape = Shape{{Set: digitSet}, {Set: digitSet, Star: true}}
			case VarType:
				shape = Shape{{Set: setOf("SNBLMOU"), Star: true}}
			}
			return op{kind: srcVar, name: name, slot: v}, shape, nil
		}
	}
	for slot, c := range env.Captures {
		if c.Name == name {
			t.FromKey = t.FromKey && c.Key
			t.captured[name] = c
			if !c.Key {
				t.Attrs = append(t.Attrs, c.Attr)
			}
			o := op{kind: srcCapture, name: name, slot: slot, number: c.All && c.Type == 'N', fromKey: c.Key}
			return o, captureShape(c, env.Delim), nil
		}
	}
	if typ, ok := env.Keys[name]; ok {
		t.Attrs = append(t.Attrs, name)
		o := op{kind: srcAttr, name: name, number: typ == 'N', fromKey: true}
		return o, captureShape(Capture{All: true, Type: typ}, env.Delim), nil
	}
	if !env.Attrs {
		return op{}, nil, fmt.Errorf("{%s} is neither a capture nor a key attribute; known: %s", name,
			strings.Join(env.known(), ", "))
	}
	t.FromKey = false
	t.Attrs = append(t.Attrs, name)
	return op{kind: srcAttr, name: name}, Shape{anyByte}, nil
}

// known returns the names that a template may refer to, for messages.
func (e *Env) known() (names []string) {
	for _, c := range e.Captures {
		names = append(names, "{"+c.Name+"}")
	}
	for _, v := range e.Vars {
		names = append(names, "{"+VarNames[v]+"}")
	}
	return names
}

// compileSalt compiles {salt(names;buckets)}. Its text has a fixed number of digits.
func (t *Template) compileSalt(part lang.TemplatePart, env *Env) (op, Shape, error) {
	n, err := strconv.ParseUint(part.Buckets, 10, 32)
	if err != nil || n < 2 || n > 10_000 {
		return op{}, nil, fmt.Errorf("{salt(…;%s)}: the number of buckets is 2 to 10000", part.Buckets)
	}
	o := op{kind: srcSalt, name: "salt", buckets: n, width: len(strconv.FormatUint(n-1, 10)), fromKey: true}
	for _, name := range part.Salt {
		ref, _, err := t.reference(name, env)
		if err != nil {
			return o, nil, err
		}
		o.salt = append(o.salt, ref)
		o.fromKey = o.fromKey && ref.fromKey
	}
	return o, exactly(o.width, digitSet)(nil), nil
}
