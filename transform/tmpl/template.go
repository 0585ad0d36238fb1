package tmpl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
)

// Variables that sources of cells offer to their templates.
const (
	VarAttr = iota
	VarPath
	VarKey
	VarMember
	VarI
	VarType
	vars
)

// VarNames are the variables' names in templates.
var VarNames = [vars]string{"attr", "path", "key", "member", "i", "type"}

// Scope holds the values that a template reads.
type Scope struct {
	Image change.Image // the item, or its keys alone
	Caps  []string
	Vars  [vars]string
}

type source uint8

const (
	srcLiteral source = iota
	srcCapture
	srcAttr
	srcVar
	srcSalt
)

// Segment modes: how a reference that is not the last one is separated from what follows.
const (
	SegRaw     = ""
	SegStrict  = "strict"  // refuse values that hold the separator, or are empty
	SegEscape  = "escape"  // percent-escape the separator and %
	SegOrdered = "ordered" // 00 becomes 00 FF, separators become 00 01: sorts like the tuple
)

type op struct {
	kind    source
	lit     string
	name    string
	slot    int
	filters []filterStep
	mode    string
	stop    string // the text that follows a reference that is not the last part
	empty   bool   // the value may be empty
	number  bool   // a number of DynamoDB: without leading zeros
	fixed   bool   // the result always has the same length
	bytes   Set    // the bytes that the result may hold
	shape   Shape  // of the result
	fromKey bool   // the primary key gives the value
	salt    []op
	buckets uint64
	width   int
}

// Env is what a template may refer to, and how its segments are separated.
type Env struct {
	Captures []Capture
	Vars     []int           // allowed variables
	Keys     map[string]byte // key attributes and their types
	Attrs    bool            // attributes of the item may be used
	Segments string
	Delim    string
	Empty    bool // references that are not the last part may be empty
	Secrets  map[string][]byte
}

// Template is a compiled template. It is immutable and safe for concurrent use.
type Template struct {
	Source    string
	ops       []op
	Shape     Shape
	Attrs     []string        // attributes that it reads
	Covers    map[string]bool // captures and attributes whose values follow from the result
	Uses      map[string]bool // all captures, attributes, variables that it reads
	Vars      [vars]bool      // variables of the source that it reads
	FromKey   bool            // it reads nothing but the primary key
	Exposed   map[string]bool // references whose text is in the result, not only a keyed hash of it
	Filters   []string        // names of all filters
	Lossy     bool            // two values of a variable may give the same text
	Ambiguity string          // why two different inputs may give the same text; "" if they cannot
	captured  map[string]Capture
}

// Append appends the template's text for a scope. A *MissingError means that the item lacks an
// attribute; a *Refusal that a value is not allowed at its place.
func (t *Template) Append(dst []byte, s *Scope) ([]byte, error) {
	for i := range t.ops {
		o := &t.ops[i]
		if o.kind == srcLiteral {
			dst = append(dst, o.lit...)
			continue
		}
		start := len(dst)
		var err error
		if dst, err = o.append(dst, s); err != nil {
			return dst[:start], err
		}
		if o.mode != SegRaw {
			if dst, err = o.separate(dst, start); err != nil {
				return dst[:start], err
			}
		}
	}
	return dst, nil
}

// ShapeGiven returns the shape of the texts that the template can give for one item. The item's key
// is in the scope, with the captures that come from the key: what depends on other attributes stays
// open. The error is a *Refusal when no item with this key can have such a text.
func (t *Template) ShapeGiven(s *Scope) (Shape, error) {
	var out Shape
	for i := range t.ops {
		o := &t.ops[i]
		if !o.fromKey {
			out = append(out, o.shape...)
			continue
		}
		text, err := (&Template{ops: t.ops[i : i+1]}).Append(nil, s)
		if err != nil {
			return nil, err
		}
		out = append(out, Text(string(text))...)
	}
	return out, nil
}

// append appends the filtered value of a reference, or the bucket of a salt.
func (o *op) append(dst []byte, s *Scope) ([]byte, error) {
	if o.kind == srcSalt {
		return o.appendSalt(dst, s)
	}
	text, err := o.text(s)
	if err != nil {
		return dst, err
	}
	for i := range o.filters {
		if i == len(o.filters)-1 {
			return o.nameRefusal(o.filters[i].apply(dst, text))
		}
		step, err := o.filters[i].apply(nil, text)
		if err != nil {
			return o.nameRefusal(dst, err)
		}
		text = string(step)
	}
	return append(dst, text...), nil
}

// nameRefusal adds the name of the reference to a refusal.
func (o *op) nameRefusal(dst []byte, err error) ([]byte, error) {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return dst, Refuse(r.Code, "{%s}: %s", o.name, r.What)
	}
	return dst, err
}

// text returns the value of a reference before its filters.
func (o *op) text(s *Scope) (string, error) {
	switch o.kind {
	case srcCapture:
		return s.Caps[o.slot], nil
	case srcVar:
		return s.Vars[o.slot], nil
	}
	v := s.Image.Get(o.name)
	if v == nil || v.Kind == change.KindNull {
		return "", &MissingError{o.name}
	}
	return Scalar(o.name, v)
}

// Scalar returns the text of a string, number or boolean, or the bytes of a binary; other types are
// refused.
func Scalar(name string, v *change.Value) (string, error) {
	switch v.Kind {
	case change.KindString:
		return v.S, nil
	case change.KindNumber:
		c, err := change.CanonicalNumber(v.S)
		if err != nil {
			return "", Refuse("number", "attribute %q: %v", name, err)
		}
		return c, nil
	case change.KindBinary, change.KindBool:
		b, err := encode.Natural(nil, v)
		return string(b), err
	}
	return "", Refuse("type", "attribute %q is of type %s and cannot be part of a key or column name", name, v.Kind)
}

// appendSalt appends the bucket of the named values: SHA-256 over length-prefixed values, modulo n.
func (o *op) appendSalt(dst []byte, s *Scope) ([]byte, error) {
	var buf []byte
	for i := range o.salt {
		text, err := o.salt[i].text(s)
		if err != nil {
			return dst, err
		}
		buf = append(binary.AppendUvarint(buf, uint64(len(text))), text...)
	}
	sum := sha256.Sum256(buf)
	bucket := strconv.FormatUint(binary.BigEndian.Uint64(sum[:8])%o.buckets, 10)
	return append(append(dst, "00000"[:o.width-len(bucket)]...), bucket...), nil
}

// separate refuses or rewrites the value from start on, so that its end can be recognized before
// the text that follows.
func (o *op) separate(dst []byte, start int) ([]byte, error) {
	value := dst[start:]
	switch o.mode {
	case SegStrict:
		if len(value) == 0 && !o.empty {
			return dst, Refuse("segment", "{%s} is empty, but only the last part of a key may be", o.name)
		}
		if endsEarly(value, o.stop) {
			return dst, Refuse("segment", "{%s} holds %q, which separates it from what follows; use `segments: escape`", o.name,
				o.stop)
		}
	case SegEscape:
		if bytes.IndexByte(value, o.stop[0]) >= 0 || bytes.IndexByte(value, '%') >= 0 {
			return escape(dst, start, o.stop[0]), nil
		}
	case SegOrdered:
		if bytes.IndexByte(value, 0) >= 0 {
			return append(dst[:start], bytes.ReplaceAll(value, []byte{0}, []byte{0, 0xff})...), nil
		}
	}
	return dst, nil
}

// endsEarly reports whether a reader that takes the first stop as the end of the value would cut it
// off.
func endsEarly(value []byte, stop string) bool {
	if len(stop) == 1 {
		return bytes.IndexByte(value, stop[0]) >= 0
	}
	return strings.Index(string(value)+stop, stop) < len(value)
}

const upperHex = "0123456789ABCDEF"

// Escaping holds the characters of escapes, none of which can be an escaped separator.
const Escaping = "%" + upperHex

// escape percent-escapes stop and % from start on.
func escape(dst []byte, start int, stop byte) []byte {
	value := string(dst[start:])
	dst = dst[:start]
	for i := range len(value) {
		if c := value[i]; c == stop || c == '%' {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// Escape appends text with every byte of chars, and %, percent-escaped.
func Escape(dst []byte, text, chars string) []byte {
	for i := range len(text) {
		if c := text[i]; c == '%' || strings.IndexByte(chars, c) >= 0 {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// Unescape is the inverse of Escape.
func Unescape(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			hi, lo := strings.IndexByte(upperHex, text[i+1]), strings.IndexByte(upperHex, text[i+2])
			if hi >= 0 && lo >= 0 {
				out = append(out, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return string(out)
}

// First returns the first reference of the template: its name, its capture if it is one, and its
// filters. ok is false if the template is empty or begins with text or a salt.
func (t *Template) First() (name string, c Capture, filters []string, ok bool) {
	if len(t.ops) == 0 || t.ops[0].kind == srcLiteral || t.ops[0].kind == srcSalt {
		return "", Capture{}, nil, false
	}
	o := &t.ops[0]
	return o.name, t.captured[o.name], o.filterNames(), true
}

// References calls f for every reference with its filters.
func (t *Template) References(f func(name string, c Capture, filters []string)) {
	for i := range t.ops {
		if o := &t.ops[i]; o.kind != srcLiteral && o.kind != srcSalt {
			f(o.name, t.captured[o.name], o.filterNames())
		}
	}
}

func (o *op) filterNames() (names []string) {
	for i := range o.filters {
		names = append(names, o.filters[i].name)
	}
	return names
}

// Parts returns into how many parts the delimiters cut the template's text.
func (t *Template) Parts(delim string) int {
	n := 1
	for i := range t.ops {
		n += strings.Count(t.ops[i].lit, delim)
	}
	return n
}

// Captured reports whether the template refers to a capture of this name.
func (t *Template) Captured(name string) bool {
	_, ok := t.captured[name]
	return ok
}
