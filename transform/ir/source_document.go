package ir

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Document is `doc:`, attributes together in one cell.
type Document struct {
	Format   string // json, dynamo_json, raw, protobuf
	Selected Attributes
}

// Describe implements Source.
func (s *Document) Describe() string { return "doc" }

// Attributes implements Source.
func (s *Document) Attributes() *Attributes { return &s.Selected }

// Listed implements Source.
func (s *Document) Listed() []string { return nil }

// Variable implements Source.
func (s *Document) Variable() (int, bool) { return tmpl.VarAttr, false }

// Decoded returns no attribute for a raw document: it is copied as it came.
func (s *Document) Decoded() *Attributes {
	if s.Format == "raw" {
		return noAttributes
	}
	return &s.Selected
}

func (s *Document) emit(e *Emitter, x *Eval) error {
	if skip, err := e.stampTime(x); err != nil || skip {
		return err
	}
	c := Emitted{By: e, Family: e.Family, Time: x.time, Mapped: x.mapped}
	var err error
	if c.Qualifier, err = e.ColumnName(x); err != nil {
		return err
	}
	if x.Values {
		start := len(x.Buf)
		if x.Buf, err = s.append(x, x.Buf); err != nil {
			return WrapRefusal("value", err, "document %s:%s", e.Family.Name, c.Qualifier)
		}
		c.Value = x.Buf[start:len(x.Buf):len(x.Buf)]
	}
	x.Cells = append(x.Cells, c)
	return nil
}

// append appends the document in its format to dst.
func (s *Document) append(x *Eval, dst []byte) ([]byte, error) {
	if s.Format == "raw" && x.Raw != nil {
		return append(dst, x.Raw...), nil
	}
	attrs := x.attrs[:0]
	for _, a := range x.Scope.Image {
		if s.Format == "raw" || s.Selected.Has(a.Name) { // a raw document is the whole image, whatever else is stripped
			a.Name = s.Selected.Written(a.Name)
			attrs = append(attrs, a)
		}
	}
	x.attrs = attrs
	if len(s.Selected.Rename) > 0 {
		if err := distinctNames(attrs); err != nil {
			return dst, err
		}
	}
	switch s.Format {
	case "json":
		return encode.Document(dst, attrs)
	case "protobuf":
		return encode.ProtobufItem(dst, attrs)
	}
	return change.Image(attrs).AppendJSON(dst), nil
}

// distinctNames refuses a document in which a renamed attribute has the name of another.
func distinctNames(attrs []change.Attr) error {
	seen := make(map[string]bool, len(attrs))
	for i := range attrs {
		if seen[attrs[i].Name] {
			return tmpl.Refuse("collision", "the document has two attributes %q, one of them renamed", attrs[i].Name)
		}
		seen[attrs[i].Name] = true
	}
	return nil
}
