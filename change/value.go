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

// Decoder decodes images into arenas: what it returned is valid until Reset, and as long as the raw
// bytes are. Strings alias the raw bytes unless they hold escapes. A Decoder is for one goroutine.
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

// PartialImage decodes the top-level attributes for which want is true and skips the others. A nil
// want decodes all.
func (d *Decoder) PartialImage(raw []byte, want func(name string) bool) (Image, error) {
	if raw == nil {
		return nil, nil
	}
	d.openAttrs, d.openVals, d.depth = d.openAttrs[:0], d.openVals[:0], 0
	m, end := d.decodeMembers(raw, skipSpace(raw, 0), want)
	if end < 0 || skipSpace(raw, end) != len(raw) {
		return nil, fmt.Errorf("decode image of %d bytes: %w", len(raw), ErrMalformed)
	}
	return m, nil
}

// decodeMembers decodes the members of the object at i that want selects. It returns the index past
// the object, or -1.
func (d *Decoder) decodeMembers(b []byte, i int, want func(name string) bool) ([]Attr, int) {
	if d.depth++; d.depth > maxDepth {
		return nil, -1
	}
	base := len(d.openAttrs)
	end := scanObject(b, i, func(raw []byte, v int) int {
		name, ok := unescape(raw)
		if !ok {
			return -1
		}
		if want != nil && !want(name) {
			return skipValue(b, v)
		}
		at := Attr{Name: name}
		e := d.decodeValue(b, v, &at.Value)
		d.openAttrs = append(d.openAttrs, at)
		return e
	})
	d.depth--
	m := copyToArena(&d.attrs, d.openAttrs[base:])
	d.openAttrs = d.openAttrs[:base]
	return m, end
}

// decodeElements decodes the list at i or, if set, the set at i with members of the given kind. It
// returns the index past it, or -1.
func (d *Decoder) decodeElements(b []byte, i int, member Kind, set bool) ([]Value, int) {
	if d.depth++; d.depth > maxDepth {
		return nil, -1
	}
	base := len(d.openVals)
	end := scanArray(b, i, func(v int) int {
		var x Value
		var e int
		if set {
			x.Kind = member
			x.S, e = scanString(b, v)
		} else {
			e = d.decodeValue(b, v, &x)
		}
		d.openVals = append(d.openVals, x)
		return e
	})
	d.depth--
	l := copyToArena(&d.vals, d.openVals[base:])
	d.openVals = d.openVals[:base]
	return l, end
}

// copyToArena copies src into the arena and returns the copy. When the arena is full it begins a
// new one; slices of the old one stay valid. An empty src gives an empty slice, never nil.
func copyToArena[T any](arena *[]T, src []T) []T {
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

// decodeValue decodes the typed value at i, such as {"S":"x"}, into v and returns the index past
// it, or -1.
func (d *Decoder) decodeValue(b []byte, i int, v *Value) int {
	if i >= len(b) || b[i] != '{' {
		return -1
	}
	i = skipSpace(b, i+1)
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	e := stringEnd(b, i+1)
	if e < 0 {
		return -1
	}
	kind := b[i+1 : e]
	i = skipSpace(b, e+1)
	if i >= len(b) || b[i] != ':' {
		return -1
	}
	if i = d.decodeTyped(b, skipSpace(b, i+1), kind, v); i < 0 {
		return -1
	}
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != '}' {
		return -1
	}
	return i + 1
}

// decodeTyped decodes the content of a value of the given type into v and returns the index past
// it, or -1.
func (d *Decoder) decodeTyped(b []byte, i int, kind []byte, v *Value) (end int) {
	switch string(kind) {
	case "S":
		v.Kind = KindString
		v.S, end = scanString(b, i)
	case "N":
		v.Kind = KindNumber
		v.S, end = scanString(b, i)
	case "B":
		v.Kind = KindBinary
		v.S, end = scanString(b, i)
	case "BOOL":
		v.Kind = KindBool
		v.Bool, end = scanBool(b, i)
	case "NULL":
		v.Kind = KindNull
		_, end = scanBool(b, i)
	case "M":
		v.Kind = KindMap
		v.M, end = d.decodeMembers(b, i, nil)
	case "L":
		v.Kind = KindList
		v.L, end = d.decodeElements(b, i, 0, false)
	case "SS":
		v.Kind = KindStringSet
		v.L, end = d.decodeElements(b, i, KindString, true)
	case "NS":
		v.Kind = KindNumberSet
		v.L, end = d.decodeElements(b, i, KindNumber, true)
	case "BS":
		v.Kind = KindBinarySet
		v.L, end = d.decodeElements(b, i, KindBinary, true)
	default:
		return -1
	}
	return end
}

func scanBool(b []byte, i int) (v bool, end int) {
	switch end = skipValue(b, i); {
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

// scanString reads the JSON string at i and returns it with the index past it, or -1.
func scanString(b []byte, i int) (string, int) {
	if i >= len(b) || b[i] != '"' {
		return "", -1
	}
	e := stringEnd(b, i+1)
	if e < 0 {
		return "", -1
	}
	s, ok := unescape(b[i+1 : e])
	if !ok {
		return "", -1
	}
	return s, e + 1
}

// unescape returns the text of a JSON string, given without its quotes. The text aliases raw unless
// raw has escapes. It is false for invalid UTF-8: replacing invalid bytes could make two different
// names or keys equal.
func unescape(raw []byte) (string, bool) {
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
