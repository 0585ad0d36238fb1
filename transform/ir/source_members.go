package ir

import (
	"strconv"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Members is the common part of the sources that expand one collection into its members: map, list
// and set.
type Members struct {
	Name     string
	word     string // the kind of source as the mapping file has it: map, list or set
	selected Attributes
	other    Otherwise
}

// Otherwise is the treatment of a value that is not a collection of the expected type.
type Otherwise struct {
	Skip    bool     // it leaves no cell
	Emitter *Emitter // writes it as one value; nil: it is skipped, or the item is refused
}

// NewMembers returns the common part of a source that expands an attribute; word is map, list or
// set.
func NewMembers(word, name string) Members {
	return Members{Name: name, word: word, selected: oneAttribute(name)}
}

// Describe implements Source.
func (s *Members) Describe() string { return s.word + ": " + s.Name }

// Attributes implements Source.
func (s *Members) Attributes() *Attributes { return &s.selected }

// Decoded implements Source.
func (s *Members) Decoded() *Attributes { return &s.selected }

// Listed implements Source.
func (s *Members) Listed() []string { return nil }

// Others returns the treatment of values of other types.
func (s *Members) Others() *Otherwise { return &s.other }

// collection returns the value to expand, and evaluates the time of its cells. It returns nil when
// the item has no such value, or when it has no cell time and the mapping omits such cells.
func (s *Members) collection(e *Emitter, x *Eval) (*change.Value, error) {
	v := e.presentValue(x, s.Name)
	if v == nil {
		return nil, nil
	}
	if skip, err := e.stampTime(x); err != nil || skip {
		return nil, err
	}
	return v, nil
}

// divert handles a value that is not a collection of the expected type.
func (s *Members) divert(e *Emitter, x *Eval, v *change.Value) error {
	switch {
	case s.other.Skip:
		return nil
	case s.other.Emitter == nil:
		return tmpl.Refuse("type", "attribute %q is of type %s, but the rule expands it as a %s; see `otherwise`",
			s.Name, v.Kind, s.word)
	}
	n := len(x.Cells)
	err := s.other.Emitter.addCell(x, v)
	for i := n; i < len(x.Cells); i++ {
		x.Cells[i].By = e
	}
	return err
}

// Map is `map:`, a cell for each entry of a map.
type Map struct{ Members }

// Variable implements Source.
func (s *Map) Variable() (int, bool) { return tmpl.VarKey, true }

func (s *Map) emit(e *Emitter, x *Eval) error {
	v, err := s.collection(e, x)
	if v == nil || err != nil {
		return err
	}
	if v.Kind != change.KindMap {
		return s.divert(e, x, v)
	}
	f := e.Values.Flatten
	for i := range v.M {
		name, member := f.pathPart(v.M[i].Name), &v.M[i].Value
		if f != nil {
			err = e.addLeaves(x, f, tmpl.VarKey, name, member)
		} else {
			x.Scope.Vars[tmpl.VarKey] = name
			err = e.addCell(x, member)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// List is `list:`, a cell for each element of a list.
type List struct {
	Members
	Versions bool // the elements are versions of one column, at times 1, 2, 3 …
}

// Variable implements Source.
func (s *List) Variable() (int, bool) { return tmpl.VarI, !s.Versions }

func (s *List) emit(e *Emitter, x *Eval) error {
	v, err := s.collection(e, x)
	if v == nil || err != nil {
		return err
	}
	if v.Kind != change.KindList {
		return s.divert(e, x, v)
	}
	for i := range v.L {
		if s.Versions {
			x.time, x.mapped = int64(i)+1, true
		} else {
			x.Scope.Vars[tmpl.VarI] = strconv.Itoa(i)
		}
		if err := e.addCell(x, &v.L[i]); err != nil {
			return err
		}
	}
	return nil
}

// Set is `set:`, a column for each member of a set; all its cells hold the same value.
type Set struct {
	Members
	Value []byte
}

// Variable implements Source.
func (s *Set) Variable() (int, bool) { return tmpl.VarMember, true }

func (s *Set) emit(e *Emitter, x *Eval) error {
	v, err := s.collection(e, x)
	if v == nil || err != nil {
		return err
	}
	if v.Kind < change.KindStringSet || v.Kind > change.KindBinarySet {
		return s.divert(e, x, v)
	}
	names, err := encode.Members(v)
	if err != nil {
		return WrapRefusal("number", err, "set %q", s.Name)
	}
	for _, m := range names {
		x.Scope.Vars[tmpl.VarMember] = string(m)
		if err := e.addConstant(x, s.Value); err != nil {
			return err
		}
	}
	return nil
}
