package tmpl

import (
	"slices"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Piece is one part of a template, for readers of the rows that it gives: literal text, a reference
// or a salt.
type Piece struct {
	Literal string   // "" for a reference
	Source  string   // the part as its author wrote it
	Name    string   // of the reference
	Names   []string // the captures and attributes that it reads; several for a salt
	Filters []string
	Salt    bool
	Number  bool // it reads a number of DynamoDB
	Lossy   bool // two values may give the same text
	Lowest  byte // a lower bound of the bytes that it can give; 0xff if its texts have one length
	Bytes   Set  // the bytes that it may give
}

// Pieces returns the template's parts.
func (t *Template) Pieces() []Piece {
	source, err := lang.ParseTemplate(t.Source)
	if err != nil || len(source) != len(t.ops) {
		return nil // New has parsed it
	}
	out := make([]Piece, len(t.ops))
	for i := range t.ops {
		o := &t.ops[i]
		out[i] = Piece{Literal: o.lit, Source: source[i].String(), Bytes: o.bytes}
		if o.kind == srcLiteral {
			continue
		}
		p := &out[i]
		p.Name, p.Names, p.Filters, p.Number, p.Lowest = o.name, []string{o.name}, o.filterNames(), o.number, t.lowest(o)
		p.Lossy = slices.ContainsFunc(o.filters, func(f filterStep) bool { return !f.injective })
		if o.kind == srcSalt {
			p.Names, p.Salt = nil, true
			for j := range o.salt {
				p.Names = append(p.Names, o.salt[j].name)
			}
		}
	}
	return out
}

// ShapeOf returns the shape of the text that the first parts give.
func (t *Template) ShapeOf(parts int) (out Shape) {
	for i := range t.ops[:parts] {
		out = append(out, t.ops[i].shape...)
	}
	return out
}

// AppendPieces appends the text of the first pieces for a scope, which needs the values of these
// alone: what a reader looks for.
func (t *Template) AppendPieces(dst []byte, s *Scope, pieces int) ([]byte, error) {
	return (&Template{ops: t.ops[:pieces]}).Append(dst, s)
}

// GoesOn reports whether a value of the part may go on with a text, so that what begins with the part
// and that text begins with other values too.
func (p *Piece) GoesOn(text string) bool {
	if p.Name == "" || p.Lowest == 0xff { // its texts have one length
		return false
	}
	for i := range len(text) {
		if !p.Bytes.Has(text[i]) {
			return false
		}
	}
	return true
}

// Has reports whether the set has a byte.
func (s Set) Has(c byte) bool { return s.has(c) }

// lowest returns a lower bound of the bytes that a reference can give. It is 0xff for texts of one
// fixed length: none is the beginning of another, so the text after them does not change their
// order.
func (t *Template) lowest(o *op) byte {
	if o.kind == srcSalt {
		return 0xff
	}
	low := byte(0)
	if t.captured[o.name].Kind == lang.Digits {
		low = '0'
	}
	if o.number {
		low = '+'
	}
	for _, f := range o.filters {
		switch f.name {
		case "pad", "revms", "rev64", "hash", "hmac", "day", "hour":
			low = 0xff
		case "ordnum":
			low = '/'
		case "hex", "div":
			low = '0'
		case "b64", "iso_ms", "s_ms", "int":
			low = '-'
		}
	}
	return low
}

// Order is how the texts of a reference sort, compared with its values in DynamoDB.
type Order int

// The orders of texts.
const (
	Unordered Order = iota
	Ascending
	Descending
)

// Order returns how the texts of the part sort. DynamoDB sorts values by their bytes, and values of
// the type N by their size; number is set for these where the mapping does not show it. Times in
// milliseconds count as sorted: from 2001 to 2286 they have 13 digits.
func (p *Piece) Order(number bool) Order {
	const text, size, time = 0, 1, 2 // what sorts the text so far as the values sort
	sorts, order := text, Ascending
	if p.Number || number {
		sorts = size
	}
	for _, f := range p.Filters {
		switch {
		case f == "hex" && sorts == text:
		case f == "iso_ms" && sorts == text, f == "s_ms" && sorts == size:
			sorts = time
		case f == "int" && sorts != text:
		case (f == "pad" || f == "ordnum") && sorts != text:
			sorts = text
		case (f == "revms" || f == "rev64") && sorts != text:
			sorts, order = text, Descending
		default:
			return Unordered
		}
	}
	if sorts == size || p.Salt {
		return Unordered
	}
	return order
}

// Keeps reports whether the texts of values that begin alike begin alike: a prefix of values is
// then a prefix of texts.
func (p *Piece) Keeps() bool {
	return !p.Number && !slices.ContainsFunc(p.Filters, func(f string) bool { return f != "hex" })
}
