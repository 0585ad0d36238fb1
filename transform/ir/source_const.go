package ir

import (
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Const is `const:`, a cell that holds the same value for every item.
type Const struct {
	Value []byte
}

// Describe implements Source.
func (s *Const) Describe() string { return "const" }

// Attributes implements Source.
func (s *Const) Attributes() *Attributes { return noAttributes }

// Decoded implements Source.
func (s *Const) Decoded() *Attributes { return noAttributes }

// Listed implements Source.
func (s *Const) Listed() []string { return nil }

// Variable implements Source.
func (s *Const) Variable() (int, bool) { return tmpl.VarAttr, false }

func (s *Const) emit(e *Emitter, x *Eval) error {
	if skip, err := e.stampTime(x); err != nil || skip {
		return err
	}
	return e.addConstant(x, s.Value)
}

// Types is `types:`, a sidecar: one cell with the types of all attributes that other emitters of
// the row write and that are not strings. With it natural encodings can be read back.
type Types struct {
	Beside []*Emitter // the emitters whose attributes it describes
}

// Describe implements Source.
func (s *Types) Describe() string { return "the type sidecar" }

// Attributes implements Source.
func (s *Types) Attributes() *Attributes { return noAttributes }

// Decoded implements Source.
func (s *Types) Decoded() *Attributes { return allAttributes }

// Listed implements Source.
func (s *Types) Listed() []string { return nil }

// Variable implements Source.
func (s *Types) Variable() (int, bool) { return tmpl.VarAttr, false }

// describes reports whether an attribute's type belongs in the cell: whether an entry that is not a
// document holds the attribute. The sidecar is not used to read documents back.
func (s *Types) describes(attr string) bool {
	for _, o := range s.Beside {
		if _, document := o.Source.(*Document); !document && o.Holds(attr) {
			return true
		}
	}
	return false
}

func (s *Types) emit(e *Emitter, x *Eval) (err error) {
	c := Emitted{By: e, Family: e.Family}
	if c.Qualifier, err = e.ColumnName(x); err != nil {
		return err
	}
	start := len(x.Buf)
	x.Buf = encode.Types(x.Buf, x.Scope.Image, s.describes)
	if c.Value = x.Buf[start:len(x.Buf):len(x.Buf)]; len(c.Value) > 0 {
		x.Cells = append(x.Cells, c)
	}
	return nil
}

// IsSidecar reports whether the emitter writes the types of other emitters' attributes.
func (e *Emitter) IsSidecar() bool {
	_, ok := e.Source.(*Types)
	return ok
}
