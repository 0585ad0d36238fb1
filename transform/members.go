package transform

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

func (e *emitter) attrs(x *exec) error {
	img := x.scope.Image
	for i := range img {
		if !e.takes(x.p, img[i].Name) {
			continue
		}
		if err := e.named(x, img[i].Name, &img[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// takes says whether a wildcard covers an attribute.
func (e *emitter) takes(p *Program, name string) bool {
	if e.names != nil {
		_, ok := slices.BinarySearch(e.names, name)
		return ok
	}
	if e.except != nil && e.except[name] {
		return false
	}
	return !p.table.StripGlobal || !globalAttribute(name)
}

// named emits one attribute, flattened where asked for.
func (e *emitter) named(x *exec, name string, v *change.Value) error {
	if to, ok := e.rename[name]; ok {
		name = to
	}
	x.scope.Vars[tmpl.VarAttr] = name
	x.scope.Vars[tmpl.VarPath] = name
	if e.flatten {
		return e.path(x, e.part(name), v)
	}
	return e.cell(x, v)
}

// path emits a map's leaves under joined names. An empty map is a leaf, so that it is not lost; Google's
// tool does lose it.
func (e *emitter) path(x *exec, path string, v *change.Value) error {
	if v.Kind != change.KindMap || (len(v.M) == 0 && e.escapes) {
		x.scope.Vars[tmpl.VarPath] = path
		return e.cell(x, v)
	}
	for i := range v.M {
		if err := e.path(x, path+e.joiner+e.part(v.M[i].Name), &v.M[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// part escapes the joiner inside of a name, so that a.b and a{b} stay two columns.
func (e *emitter) part(name string) string {
	if !e.flatten || !e.escapes || !strings.ContainsAny(name, e.joiner+"%") {
		return name
	}
	return string(tmpl.Escape(nil, name, e.joiner))
}

func (e *emitter) members(x *exec, v *change.Value, kind change.Kind) error {
	isSet := v.Kind >= change.KindStringSet && v.Kind <= change.KindBinarySet
	if (kind != 0 && v.Kind != kind) || (kind == 0 && !isSet) {
		return e.mismatch(x, v)
	}
	switch kind {
	case change.KindMap:
		for i := range v.M {
			if err := e.member(x, e.part(v.M[i].Name), &v.M[i].Value); err != nil {
				return err
			}
		}
		return nil
	case change.KindList:
		return e.elements(x, v)
	}
	members, err := encode.Members(v)
	if err != nil {
		return refusal("number", err, "set %q", e.attr)
	}
	for _, m := range members {
		x.scope.Vars[tmpl.VarMember] = string(m)
		if err := e.cell(x, nil); err != nil {
			return err
		}
	}
	return nil
}

func (e *emitter) member(x *exec, path string, v *change.Value) error {
	if !e.flatten || v.Kind != change.KindMap || len(v.M) == 0 {
		x.scope.Vars[tmpl.VarKey] = path
		return e.cell(x, v)
	}
	for i := range v.M {
		if err := e.member(x, path+e.joiner+e.part(v.M[i].Name), &v.M[i].Value); err != nil {
			return err
		}
	}
	return nil
}

func (e *emitter) elements(x *exec, v *change.Value) error {
	for i := range v.L {
		if e.versions {
			x.time, x.mapped = int64(i)+1, true
		} else {
			x.scope.Vars[tmpl.VarI] = strconv.Itoa(i)
		}
		if err := e.cell(x, &v.L[i]); err != nil {
			return err
		}
	}
	return nil
}

// mismatch handles a value whose type the emitter cannot expand.
func (e *emitter) mismatch(x *exec, v *change.Value) error {
	switch e.otherwise {
	case "skip":
		return nil
	case "", "refuse":
		return tmpl.Refuse("type", "attribute %q is of type %s, but the rule expands it as a %s; see `otherwise`", e.attr, v.Kind, e.kind)
	}
	plain := *e
	plain.family, plain.qualifier, plain.bare = e.otherFam, e.other, false
	plain.kind, plain.encode = "attr", encode.Natural
	n := len(x.cells)
	err := plain.cell(x, v)
	for i := n; i < len(x.cells); i++ {
		x.cells[i].em = e
	}
	return err
}
