package change

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Kind of an attribute value: one per type of DynamoDB.
type Kind uint8

// The ten types of DynamoDB.
const (
	KindNull Kind = iota
	KindBool
	KindString
	KindNumber
	KindBinary
	KindStringSet
	KindNumberSet
	KindBinarySet
	KindList
	KindMap
)

var kindNames = [...]string{"NULL", "BOOL", "S", "N", "B", "SS", "NS", "BS", "L", "M"}

// String returns DynamoDB's type descriptor: S, N, B, BOOL, NULL, SS, NS, BS, L or M.
func (k Kind) String() string { return kindNames[k] }

// Value is a decoded attribute value.
type Value struct {
	Kind Kind
	Bool bool
	S    string  // S as is; N as its text; B as base64 text
	L    []Value // L, SS, NS, BS; a set's members have the kind of the member
	M    []Attr
}

// Attr is a named value: an attribute of an item or a member of a map.
type Attr struct {
	Name  string
	Value Value
}

// Image is an item as a stream record shows it, in the order of its JSON.
type Image []Attr

// Get returns the attribute with that name, nil when absent.
func (m Image) Get(name string) *Value {
	for i := range m {
		if m[i].Name == name {
			return &m[i].Value
		}
	}
	return nil
}

// Bytes decodes the base64 text of a binary value.
func (v Value) Bytes() ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(v.S)
	if err != nil {
		return nil, fmt.Errorf("decode binary: %w", err)
	}
	return b, nil
}

// maxDepth is the service's nesting limit of 32 levels, with room for the image itself.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxDepth = 40

// Decoder decodes images into arenas: what it returned is valid until Reset, and as long as the raw bytes
// are. Strings alias the raw bytes unless they hold escapes. A Decoder is for one goroutine.
type Decoder struct {
	vals  []Value
	attrs []Attr
	// Scratch stacks: members of the objects and lists that are open at the moment.
	openAttrs []Attr
	openVals  []Value
	depth     int
}

// Reset makes the arenas free for the next batch.
func (d *Decoder) Reset() { d.vals, d.attrs = d.vals[:0], d.attrs[:0] }

// Image decodes a whole image. A nil raw is a nil Image.
func (d *Decoder) Image(raw []byte) (Image, error) { return d.PartialImage(raw, nil) }

// PartialImage decodes the top-level attributes for which want is true and skips the others. A nil want decodes all.
func (d *Decoder) PartialImage(raw []byte, want func(name string) bool) (Image, error) {
	if raw == nil {
		return nil, nil
	}
	d.openAttrs, d.openVals, d.depth = d.openAttrs[:0], d.openVals[:0], 0
	m, end := d.members(raw, space(raw, 0), want)
	if end < 0 || space(raw, end) != len(raw) {
		return nil, fmt.Errorf("decode image of %d bytes: %w", len(raw), ErrMalformed)
	}
	return m, nil
}

func (d *Decoder) members(b []byte, i int, want func(name string) bool) ([]Attr, int) {
	if d.depth++; d.depth > maxDepth {
		return nil, -1
	}
	base := len(d.openAttrs)
	end := object(b, i, func(raw []byte, v int) int {
		name, ok := text(raw)
		if !ok {
			return -1
		}
		if want != nil && !want(name) {
			return skip(b, v)
		}
		at := Attr{Name: name}
		e := d.value(b, v, &at.Value)
		d.openAttrs = append(d.openAttrs, at)
		return e
	})
	d.depth--
	m := keep(&d.attrs, d.openAttrs[base:])
	d.openAttrs = d.openAttrs[:base]
	return m, end
}

func (d *Decoder) elements(b []byte, i int, member Kind, set bool) ([]Value, int) {
	if d.depth++; d.depth > maxDepth {
		return nil, -1
	}
	base := len(d.openVals)
	end := array(b, i, func(v int) int {
		var x Value
		var e int
		if set {
			x.Kind = member
			x.S, e = str(b, v)
		} else {
			e = d.value(b, v, &x)
		}
		d.openVals = append(d.openVals, x)
		return e
	})
	d.depth--
	l := keep(&d.vals, d.openVals[base:])
	d.openVals = d.openVals[:base]
	return l, end
}

// keep copies src into the arena. A full arena is left to those who hold slices of it. What was there but
// empty is empty, never nil.
func keep[T any](arena *[]T, src []T) []T {
	if len(src) == 0 {
		return []T{}
	}
	n := len(*arena)
	if cap(*arena)-n < len(src) {
		*arena = make([]T, 0, 2*cap(*arena)+len(src)+64)
		n = 0
	}
	*arena = append(*arena, src...)
	return (*arena)[n:len(*arena):len(*arena)]
}

func (d *Decoder) value(b []byte, i int, v *Value) int {
	if i >= len(b) || b[i] != '{' {
		return -1
	}
	i = space(b, i+1)
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	e := stringEnd(b, i+1)
	if e < 0 {
		return -1
	}
	kind := b[i+1 : e]
	i = space(b, e+1)
	if i >= len(b) || b[i] != ':' {
		return -1
	}
	if i = d.typed(b, space(b, i+1), kind, v); i < 0 {
		return -1
	}
	i = space(b, i)
	if i >= len(b) || b[i] != '}' {
		return -1
	}
	return i + 1
}

func (d *Decoder) typed(b []byte, i int, kind []byte, v *Value) (end int) {
	switch string(kind) {
	case "S":
		v.Kind = KindString
		v.S, end = str(b, i)
	case "N":
		v.Kind = KindNumber
		v.S, end = str(b, i)
	case "B":
		v.Kind = KindBinary
		v.S, end = str(b, i)
	case "BOOL":
		v.Kind = KindBool
		v.Bool, end = boolean(b, i)
	case "NULL":
		v.Kind = KindNull
		_, end = boolean(b, i)
	case "M":
		v.Kind = KindMap
		v.M, end = d.members(b, i, nil)
	case "L":
		v.Kind = KindList
		v.L, end = d.elements(b, i, 0, false)
	case "SS":
		v.Kind = KindStringSet
		v.L, end = d.elements(b, i, KindString, true)
	case "NS":
		v.Kind = KindNumberSet
		v.L, end = d.elements(b, i, KindNumber, true)
	case "BS":
		v.Kind = KindBinarySet
		v.L, end = d.elements(b, i, KindBinary, true)
	default:
		return -1
	}
	return end
}

func boolean(b []byte, i int) (v bool, end int) {
	switch end = skip(b, i); {
	case end < 0:
		return false, -1
	case string(b[i:end]) == "true":
		return true, end
	case string(b[i:end]) == "false":
		return false, end
	}
	return false, -1
}

func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// str reads the JSON string at i and returns it with the index past it, or -1.
func str(b []byte, i int) (string, int) {
	if i >= len(b) || b[i] != '"' {
		return "", -1
	}
	e := stringEnd(b, i+1)
	if e < 0 {
		return "", -1
	}
	s, ok := text(b[i+1 : e])
	if !ok {
		return "", -1
	}
	return s, e + 1
}

// text returns what the inside of a JSON string means. It aliases raw unless there are escapes. What is no
// UTF-8 is refused: repaired, two names or keys could become one.
func text(raw []byte) (string, bool) {
	if !utf8.Valid(raw) {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return alias(raw), true
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		if i++; i >= len(raw) {
			return "", false
		}
		if raw[i] == 'u' {
			r, used := escapedRune(raw[i+1:])
			if used == 0 {
				return "", false
			}
			out = utf8.AppendRune(out, r)
			i += used
			continue
		}
		c := unescaped[raw[i]]
		if c == 0 {
			return "", false
		}
		out = append(out, c)
	}
	return alias(out), true
}

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}

// escapedRune reads four hex digits, and the second half of a surrogate pair where one follows.
func escapedRune(b []byte) (r rune, used int) {
	r, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if low, ok := hex4(b[6:]); ok {
			if p := utf16.DecodeRune(r, low); p != utf8.RuneError {
				return p, 10
			}
		}
	}
	return utf8.RuneError, 4
}

func hex4(b []byte) (v rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c|32 >= 'a' && c|32 <= 'f':
			v = v<<4 | rune(c|32-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
