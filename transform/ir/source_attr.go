package ir

import (
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Attr is `attr:`, the value of one attribute.
type Attr struct {
	Name     string
	selected Attributes
}

// NewAttr returns the source of one attribute.
func NewAttr(name string) *Attr { return &Attr{Name: name, selected: oneAttribute(name)} }

// Describe implements Source.
func (s *Attr) Describe() string { return "attr: " + s.Name }

// Attributes implements Source.
func (s *Attr) Attributes() *Attributes { return &s.selected }

// Decoded implements Source.
func (s *Attr) Decoded() *Attributes { return &s.selected }

// Listed implements Source.
func (s *Attr) Listed() []string { return s.selected.Names }

// Variable implements Source.
func (s *Attr) Variable() (int, bool) { return tmpl.VarAttr, false }

func (s *Attr) emit(e *Emitter, x *Eval) error {
	v := e.presentValue(x, s.Name)
	if v == nil {
		return nil
	}
	if skip, err := e.stampTime(x); err != nil || skip {
		return err
	}
	return e.addAttribute(x, s.Name, v)
}

// Attrs is `attrs:`, several attributes or all of them, each in a column of its own.
type Attrs struct {
	Selected Attributes
}

// Attributes implements Source.
func (s *Attrs) Attributes() *Attributes { return &s.Selected }

// Decoded implements Source.
func (s *Attrs) Decoded() *Attributes { return &s.Selected }

// Listed implements Source.
func (s *Attrs) Listed() []string { return s.Selected.Names }

// Variable implements Source.
func (s *Attrs) Variable() (int, bool) { return tmpl.VarAttr, len(s.Selected.Names) != 1 }

// Describe implements Source.
func (s *Attrs) Describe() string {
	if s.Selected.All() {
		return "attrs: all"
	}
	return "attrs: [" + strings.Join(s.Selected.Names, ", ") + "]"
}

func (s *Attrs) emit(e *Emitter, x *Eval) error {
	if skip, err := e.stampTime(x); err != nil || skip {
		return err
	}
	img := x.Scope.Image
	for i := range img {
		if !s.Selected.Has(img[i].Name) {
			continue
		}
		if err := e.addAttribute(x, s.Selected.Written(img[i].Name), &img[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// addAttribute adds the cell of one attribute, or a cell per leaf where maps are flattened.
func (e *Emitter) addAttribute(x *Eval, name string, v *change.Value) error {
	x.Scope.Vars[tmpl.VarAttr] = name
	x.Scope.Vars[tmpl.VarPath] = name
	if f := e.Values.Flatten; f != nil {
		return e.addLeaves(x, f, tmpl.VarPath, f.pathPart(name), v)
	}
	return e.addCell(x, v)
}

// Flatten is the way in which the leaves of nested maps are named.
type Flatten struct {
	Joiner  string
	Escapes bool // the joiner is escaped inside of names, so that attribute a.b and member b of a have two columns
}

// pathPart returns a name as it is written in a path.
func (f *Flatten) pathPart(name string) string {
	if f == nil || !f.Escapes || !strings.ContainsAny(name, f.Joiner+"%") {
		return name
	}
	return string(tmpl.Escape(nil, name, f.Joiner))
}

// addLeaves adds a cell for each leaf of a map, under the names that lead to it. An empty map is a
// leaf, so that it is not lost. With `as: google`, where names are not escaped, an empty map in a
// path has no cell, as in Google's tool.
func (e *Emitter) addLeaves(x *Eval, f *Flatten, variable int, path string, v *change.Value) error {
	empty := len(v.M) == 0 && (f.Escapes || variable == tmpl.VarKey)
	if v.Kind != change.KindMap || empty {
		x.Scope.Vars[variable] = path
		return e.addCell(x, v)
	}
	for i := range v.M {
		if err := e.addLeaves(x, f, variable, path+f.Joiner+f.pathPart(v.M[i].Name), &v.M[i].Value); err != nil {
			return err
		}
	}
	return nil
}
