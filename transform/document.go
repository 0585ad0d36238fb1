package transform

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// document writes attributes together into one cell.
func (e *emitter) document(x *exec) (err error) {
	c := cell{em: e, fam: e.family, time: x.time, mapped: x.mapped}
	if c.qual, err = e.column(x); err != nil {
		return err
	}
	if x.values {
		start := len(x.buf)
		if x.buf, err = e.appendDocument(x, x.buf); err != nil {
			return refusal("value", err, "document %s:%s", e.family.Name, c.qual)
		}
		c.value = x.buf[start:len(x.buf):len(x.buf)]
	}
	x.cells = append(x.cells, c)
	return nil
}

func (e *emitter) appendDocument(x *exec, dst []byte) ([]byte, error) {
	if e.format == "raw" && x.raw != nil {
		return append(dst, x.raw...), nil
	}
	attrs := x.attrs[:0]
	for _, a := range x.scope.Image {
		if e.format == "raw" || e.takes(x.p, a.Name) { // a raw document is the whole image, whatever else is stripped
			if to, ok := e.rename[a.Name]; ok {
				a.Name = to
			}
			attrs = append(attrs, a)
		}
	}
	x.attrs = attrs
	if len(e.rename) > 0 {
		if err := distinctNames(attrs); err != nil {
			return dst, err
		}
	}
	switch e.format {
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
