package transform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Lossless says whether every item can be turned back from its main row, and if not, why.
func (p *Program) Lossless() (bool, string) {
	if !p.byKey {
		return false, "rules depend on attributes that are not part of the key"
	}
	for _, r := range p.rules {
		if r.drop {
			return false, "rule " + r.name + " drops items"
		}
		if why := r.plans[0].loses(p); why != "" {
			return false, "rule " + r.name + ": " + why
		}
	}
	return true, ""
}

func (pl *plan) loses(p *Program) string {
	var wild *emitter
	sidecar := false
	for _, e := range pl.emitters {
		sidecar = sidecar || e.kind == "types"
		if (e.kind == "attrs" || e.kind == "doc") && e.names == nil {
			wild = e
		}
	}
	if wild == nil {
		return "attributes that it does not name are not written"
	}
	for name := range wild.except {
		written := slices.ContainsFunc(pl.emitters, func(e *emitter) bool { return e.attr == name || slices.Contains(e.names, name) })
		if !written && p.keyType(name) == 0 {
			return fmt.Sprintf("attribute %q is not written", name)
		}
	}
	for _, e := range pl.emitters {
		if why := e.loses(sidecar); why != "" {
			return "`" + e.describe() + "`: " + why
		}
	}
	return ""
}

// loses says what an emitter forgets, "" when nothing.
func (e *emitter) loses(sidecar bool) string {
	as := e.src.As.S
	typed := as == "dynamo_json" || as == "int64" || as == "decimal" || as == "bool1"
	switch {
	case e.kind == "types" || e.kind == "const":
		return ""
	case e.qualifier.Vars[tmpl.VarType]:
		return "columns that name the type are for readers"
	case e.flatten || e.fallback != nil || e.versions || e.siblings || e.other != nil:
		return "what it writes cannot be put together again"
	case e.kind == "doc" && e.format != "dynamo_json" && e.format != "raw":
		return "format " + e.format + " does not keep types"
	case e.kind == "doc":
		return ""
	case (e.kind == "map" || e.kind == "list") && as != "dynamo_json":
		return "the types of its members are not kept; write as: dynamo_json"
	case e.kind != "attr" && e.kind != "attrs":
		if !sidecar {
			return "an empty collection leaves no cell; add `types: \"family:column\"`"
		}
		return ""
	case !typed && as != "" && as != "natural":
		return "encoding " + as + " does not keep the type"
	case !typed && !sidecar:
		return "types are not kept; add `types: \"family:column\"`, or as: dynamo_json"
	}
	return ""
}

// Unmap turns an item's main row back into the item: keys are its key attributes (the row's marker holds
// them), cells what the row holds of it. It is exact where the program is Lossless; numbers come back in
// canonical form, attributes sorted by name.
func (p *Program) Unmap(keys change.Image, cells []Cell) (change.Image, error) {
	m := p.newMemory()
	r, err := p.ruleOfKey(&m.exec, keys)
	if err != nil {
		return nil, err
	}
	if r == nil || r.drop {
		return nil, tmpl.Refuse("no_rule", "no rule of the mapping writes this item, or rules depend on more than its key")
	}
	u := unmapper{x: &m.exec, cells: cells, types: map[string]change.Kind{}, found: map[string]change.Value{}}
	pl := r.plans[0]
	for _, e := range pl.emitters {
		if e.kind == "types" {
			if err := u.sidecar(e); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range pl.emitters {
		if err := u.emitter(p, e); err != nil {
			return nil, err
		}
	}
	return u.image(p, keys), nil
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
		return err
	}
	for _, c := range u.cells {
		if c.Family == e.family.Name && string(c.Qualifier) == string(q) {
			u.types, err = encode.ParseTypes(c.Value)
			return err
		}
	}
	return nil
}

// around evaluates the column with a mark in place of a variable, and returns what stands around it.
func (u *unmapper) around(e *emitter) (before, after string, err error) {
	const mark = "\x00\xfe\x00mark\x00\xfe\x00"
	for v := range u.x.scope.Vars {
		u.x.scope.Vars[v] = mark
	}
	q, err := e.column(u.x)
	before, after, _ = strings.Cut(string(q), mark)
	return before, after, err
}

func (u *unmapper) emitter(p *Program, e *emitter) error {
	if e.kind == "types" || e.kind == "const" {
		return nil
	}
	before, after, err := u.around(e)
	if err != nil {
		return err
	}
	for _, c := range u.cells {
		q := string(c.Qualifier)
		if c.Family != e.family.Name || len(q) < len(before)+len(after) || !strings.HasPrefix(q, before) || !strings.HasSuffix(q, after) {
			continue
		}
		if err := u.cell(p, e, q[len(before):len(q)-len(after)], c.Value, q == before); err != nil {
			return refusal("unmap", err, "column %s:%s", c.Family, q)
		}
	}
	return nil
}

// cell takes one cell back; part is what stands where the emitter's variable was.
func (u *unmapper) cell(p *Program, e *emitter, part string, value []byte, fixed bool) error {
	switch e.kind {
	case "doc":
		var d change.Decoder
		img, err := d.Image(value)
		for _, a := range img {
			u.found[a.Name] = a.Value
		}
		return err
	case "attr", "attrs":
		name := e.origin(part)
		if e.kind == "attr" {
			if !fixed && name != e.attr {
				return nil
			}
			name = e.attr
		} else if fixed && len(e.names) == 1 {
			name = e.names[0]
		}
		if e.kind == "attrs" && !e.takes(p, name) {
			return nil
		}
		v, err := e.decode(u.kind(name), value)
		u.found[name] = v
		return err
	}
	v := u.found[e.attr]
	switch e.kind {
	case "set":
		v.Kind = u.kind(e.attr)
		member, err := encode.ParseNatural(v.Kind-change.KindStringSet+change.KindString, []byte(part))
		if err != nil {
			return err
		}
		v.L = append(v.L, member)
	case "map", "list":
		element, err := encode.ParseDynamoJSON(value)
		if err != nil {
			return err
		}
		if v.Kind = change.KindMap; e.kind == "list" {
			v.Kind = change.KindList
			v.L = append(v.L, element) // cells come in column order, which padding makes the list's
		} else {
			v.M = append(v.M, change.Attr{Name: part, Value: element})
		}
	}
	u.found[e.attr] = v
	return nil
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

func (u *unmapper) kind(name string) change.Kind {
	if k, ok := u.types[name]; ok {
		return k
	}
	return change.KindString
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

// image puts together the keys, what was found, and what left no cells but stands in the sidecar.
func (u *unmapper) image(p *Program, keys change.Image) change.Image {
	for name, kind := range u.types {
		if _, ok := u.found[name]; !ok {
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
