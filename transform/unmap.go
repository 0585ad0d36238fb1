package transform

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Unmap turns an item's main row back into the item: keys are its key attributes (the row's marker holds
// them), cells what the row holds of it. It is exact where the program is Lossless, and elsewhere leaves out what
// cannot be read back; numbers come back in canonical form, attributes sorted by name.
func (p *Program) Unmap(keys change.Image, cells []Cell) (change.Image, error) {
	m := p.newMemory()
	r, err := p.ruleByKey(&m.exec, keys)
	if err != nil {
		return nil, err
	}
	u := unmapper{x: &m.exec, cells: cells, types: map[string]change.Kind{}, found: map[string]change.Value{}}
	pl := r.plans[0]
	if e, _ := pl.typed(); e != nil {
		if err := u.sidecar(e); err != nil {
			return nil, err
		}
	}
	carriers, _ := p.carriers(pl)
	for _, e := range carriers {
		if err := u.emitter(p, e); err != nil {
			return nil, err
		}
	}
	return u.image(p, keys), nil
}

// ruleByKey finds the rule of an item and leaves its captures in the scope. It stops at a rule of which the key does
// not tell whether the item meets it.
func (p *Program) ruleByKey(x *exec, keys change.Image) (*rule, error) {
	x.scope.Image = keys
	for _, r := range p.rules {
		if !r.byKey() {
			return nil, tmpl.Refuse("no_rule", "rule %s tests more than key attributes: the row does not tell which rule wrote it", r.name)
		}
		x.scope.Caps = x.caps
		if ok, err := matches(r.conds, nil, keys, x.scope.Caps); err != nil || !ok {
			continue
		}
		if len(r.plans) == 0 {
			return nil, tmpl.Refuse("no_rule", "rule %s drops the item", r.name)
		}
		return r, nil
	}
	return nil, tmpl.Refuse("no_rule", "no rule of the mapping writes this item")
}

type unmapper struct {
	x     *exec
	cells []Cell
	types map[string]change.Kind
	found map[string]change.Value
}

func (u *unmapper) sidecar(e *emitter) error {
	q, err := e.column(u.x)
	if err != nil {
		return unlessRefused(err) // a column that is refused was never written
	}
	for _, c := range u.cells {
		if c.Family == e.family.Name && string(c.Qualifier) == string(q) {
			u.types, err = encode.ParseTypes(c.Value)
			return err
		}
	}
	return nil
}

// emitter takes back what one of the carriers wrote.
func (u *unmapper) emitter(p *Program, e *emitter) error {
	switch {
	case e.kind == "doc":
		return u.exact(e, "", u.document)
	case e.kind == "attr":
		return u.exact(e, e.attr, u.value)
	case len(e.names) == 1:
		return u.exact(e, e.names[0], u.value)
	case e.kind == "attrs":
		return u.each(e, func(e *emitter, part string, c *Cell) error {
			if part = e.origin(part); !e.takes(p, part) {
				return nil
			}
			return u.value(e, part, c)
		})
	}
	return u.collection(e)
}

// exact calls f for the cell of an emitter's only column.
func (u *unmapper) exact(e *emitter, name string, f func(*emitter, string, *Cell) error) error {
	shown := name
	if to, ok := e.rename[name]; ok {
		shown = to
	}
	u.x.scope.Vars[tmpl.VarAttr], u.x.scope.Vars[tmpl.VarPath] = shown, shown
	q, err := e.column(u.x)
	if err != nil {
		return unlessRefused(err)
	}
	for i := range u.cells {
		if c := &u.cells[i]; e.mayStandIn(c.Family) && string(c.Qualifier) == string(q) {
			return u.place(f(e, name, c), c)
		}
	}
	return nil
}

// each calls f for every cell of an emitter, with what stands where its variable was.
func (u *unmapper) each(e *emitter, f func(e *emitter, part string, c *Cell) error) error {
	h, _ := e.qualifier.Hole()
	before, after, err := e.qualifier.Around(h, &u.x.scope)
	if err != nil {
		return unlessRefused(err)
	}
	for i := range u.cells {
		c := &u.cells[i]
		part, ok := between(string(c.Qualifier), before, after)
		if e.kind == "list" {
			part, ok = position(part)
		}
		if !ok || !e.mayStandIn(c.Family) || !e.gives(u.x, h.Var, part, c.Qualifier) {
			continue
		}
		if err := u.place(f(e, part, c), c); err != nil {
			return err
		}
	}
	return nil
}

// gives says whether the emitter's column for a variable is this one: what stands beside a collection in its family
// may look like a member of it that the template would never write.
func (e *emitter) gives(x *exec, v int, part string, column []byte) bool {
	x.scope.Vars[v] = part
	q, err := e.column(x)
	return err == nil && string(q) == string(column)
}

// position is an index without the zeros in front of it.
func position(part string) (string, bool) {
	n, err := strconv.ParseUint(part, 10, 32)
	return strconv.FormatUint(n, 10), err == nil
}

// between cuts out what stands between two texts.
func between(s, before, after string) (string, bool) {
	if len(s) < len(before)+len(after) || !strings.HasPrefix(s, before) || !strings.HasSuffix(s, after) {
		return "", false
	}
	return s[len(before) : len(s)-len(after)], true
}

func (e *emitter) mayStandIn(family string) bool {
	return e.family.Name == family || e.fallback != nil && e.fallback.Name == family
}

// place says in an error which cell it is about.
func (u *unmapper) place(err error, c *Cell) error {
	if err == nil {
		return nil
	}
	return refusal("unmap", err, "column %s:%s", c.Family, c.Qualifier)
}

func (u *unmapper) document(e *emitter, _ string, c *Cell) error {
	var d change.Decoder
	img, err := d.Image(c.Value)
	for _, a := range img {
		u.found[e.origin(a.Name)] = a.Value
	}
	return err
}

func (u *unmapper) value(e *emitter, name string, c *Cell) (err error) {
	kind, ok := u.types[name]
	if !ok {
		kind = change.KindString
	}
	if c.Family != e.family.Name {
		u.found[name], err = encode.ParseNatural(kind, c.Value)
	} else {
		u.found[name], err = e.decode(kind, c.Value)
	}
	return err
}

// collection puts a set, a map or a list together from the cells of its members.
func (u *unmapper) collection(e *emitter) error {
	v := change.Value{Kind: u.types[e.attr]}
	elements := map[int]change.Value{}
	err := u.each(e, func(e *emitter, part string, c *Cell) error {
		member, err := u.member(e, v.Kind, part, c)
		if err != nil {
			return err
		}
		switch e.kind {
		case "set":
			v.L = append(v.L, member)
		case "map":
			v.M = append(v.M, change.Attr{Name: part, Value: member})
		case "list":
			i, err := strconv.Atoi(part)
			if err != nil {
				return fmt.Errorf("parse position: %w", err)
			}
			elements[i] = member
		}
		return nil
	})
	for i := range len(elements) {
		v.L = append(v.L, elements[i])
	}
	if v.Kind >= change.KindStringSet {
		u.found[e.attr] = v
	}
	return err
}

func (u *unmapper) member(e *emitter, of change.Kind, part string, c *Cell) (change.Value, error) {
	if e.kind == "set" {
		return encode.ParseNatural(of-change.KindStringSet+change.KindString, []byte(part))
	}
	return encode.ParseDynamoJSON(c.Value)
}

// origin undoes a renaming.
func (e *emitter) origin(name string) string {
	for from, to := range e.rename {
		if to == name {
			return from
		}
	}
	return name
}

func (e *emitter) decode(kind change.Kind, b []byte) (change.Value, error) {
	switch e.src.As.S {
	case "int64":
		return encode.ParseInt64(b)
	case "dynamo_json":
		return encode.ParseDynamoJSON(b)
	case "decimal":
		kind = change.KindNumber
	case "bool1":
		return change.Value{Kind: change.KindBool, Bool: len(b) == 1 && b[0] == 1}, nil
	}
	return encode.ParseNatural(kind, b)
}

// image puts together the keys, what was found, and NULLs, which leave no cells but stand in the sidecar.
func (u *unmapper) image(p *Program, keys change.Image) change.Image {
	for name, kind := range u.types {
		if _, ok := u.found[name]; !ok && kind == change.KindNull {
			u.found[name] = change.Value{Kind: kind}
		}
	}
	for _, k := range keys {
		if p.keyType(k.Name) != 0 {
			u.found[k.Name] = k.Value
		}
	}
	out := make(change.Image, 0, len(u.found))
	for name, v := range u.found {
		out = append(out, change.Attr{Name: name, Value: v})
	}
	slices.SortFunc(out, func(a, b change.Attr) int { return strings.Compare(a.Name, b.Name) })
	return out
}
