package wire

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

var errSyntax = errors.New("malformed JSON")

// maxDepth limits recursion. Items may be nested 32 levels deep, which is about 70 in JSON.
const maxDepth = 512

// Parse parses one JSON document. The nodes alias body, which must not change while they are in
// use.
func Parse(body string) (*Node, error) {
	p := parser{s: body}
	var n Node
	p.space()
	if err := p.value(&n, 0); err != nil {
		return nil, err
	}
	p.space()
	if p.i != len(p.s) {
		return nil, errSyntax
	}
	return &n, nil
}

// parser parses one document.
type parser struct {
	s     string
	i     int    // index of the next byte
	pool  []Node // chunk from which take returns slices
	chunk int    // size of the newest chunk; they grow, so that a small document needs little
}

// take returns a copy of nodes in a shared chunk, so that a request needs few allocations instead
// of one per attribute.
func (p *parser) take(nodes []Node) []Node {
	if len(nodes) == 0 {
		return nil
	}
	if cap(p.pool)-len(p.pool) < len(nodes) {
		p.chunk = min(max(8, 2*p.chunk), 64)
		p.pool = make([]Node, 0, max(p.chunk, len(nodes)))
	}
	at := len(p.pool)
	p.pool = append(p.pool, nodes...)
	return p.pool[at:len(p.pool):len(p.pool)]
}

// space skips white space.
func (p *parser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// value parses one value.
func (p *parser) value(n *Node, depth int) error {
	if p.i >= len(p.s) || depth > maxDepth {
		return errSyntax
	}
	var err error
	switch c := p.s[p.i]; {
	case c == '{':
		n.Kind = Object
		n.Kids, err = p.kids(depth, '}', true)
	case c == '[':
		n.Kind = Array
		n.Kids, err = p.kids(depth, ']', false)
	case c == '"':
		n.Kind = String
		n.Text, err = p.str()
	case c == '-' || c >= '0' && c <= '9':
		n.Kind = Number
		n.Text, err = p.number()
	case strings.HasPrefix(p.s[p.i:], "true"):
		n.Kind, n.Text = Bool, "true"
		p.i += 4
	case strings.HasPrefix(p.s[p.i:], "false"):
		n.Kind, n.Text = Bool, "false"
		p.i += 5
	case strings.HasPrefix(p.s[p.i:], "null"):
		n.Kind = Null
		p.i += 4
	default:
		err = errSyntax
	}
	return err
}

// kids parses the fields of an object or the elements of an array, up to and including the closing
// byte.
func (p *parser) kids(depth int, end byte, named bool) ([]Node, error) {
	var room [12]Node
	kids := room[:0]
	p.i++
	for first := true; ; first = false {
		p.space()
		if p.i >= len(p.s) {
			return nil, errSyntax
		}
		if p.s[p.i] == end {
			p.i++
			return p.take(kids), nil
		}
		if !first {
			if p.s[p.i] != ',' {
				return nil, errSyntax
			}
			p.i++
			p.space()
		}
		var n Node
		if named {
			if err := p.name(&n); err != nil {
				return nil, err
			}
		}
		if err := p.value(&n, depth+1); err != nil {
			return nil, err
		}
		kids = append(kids, n)
	}
}

// name parses the name of a field and the colon after it.
func (p *parser) name(n *Node) (err error) {
	if p.i >= len(p.s) || p.s[p.i] != '"' {
		return errSyntax
	}
	if n.Name, err = p.str(); err != nil {
		return err
	}
	p.space()
	if p.i >= len(p.s) || p.s[p.i] != ':' {
		return errSyntax
	}
	p.i++
	p.space()
	return nil
}

// str parses a string. Invalid UTF-8 is replaced.
func (p *parser) str() (string, error) {
	p.i++
	start := p.i
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == '"':
			p.i++
			s := p.s[start : p.i-1]
			if !utf8.ValidString(s) {
				s = string([]rune(s))
			}
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			return "", errSyntax
		}
		p.i++
	}
	return "", errSyntax
}

// escaped parses the rest of a string with escapes, which begins at start.
func (p *parser) escaped(start int) (string, error) {
	b := append([]byte(nil), p.s[start:p.i]...)
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return string([]rune(string(b))), nil
		case c < 0x20:
			return "", errSyntax
		case c != '\\':
			b = append(b, c)
		default:
			var err error
			if b, err = p.escape(b); err != nil {
				return "", err
			}
		}
	}
	return "", errSyntax
}

// escape parses what follows a backslash, and appends it.
func (p *parser) escape(b []byte) ([]byte, error) {
	if p.i >= len(p.s) {
		return nil, errSyntax
	}
	c := p.s[p.i]
	p.i++
	if c == 'u' {
		r, err := p.hex()
		if err != nil {
			return nil, err
		}
		if utf16.IsSurrogate(r) && strings.HasPrefix(p.s[p.i:], `\u`) {
			at := p.i
			p.i += 2
			low, err := p.hex()
			if err != nil {
				return nil, err
			}
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return utf8.AppendRune(b, pair), nil
			}
			p.i = at
		}
		return utf8.AppendRune(b, r), nil
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	k := strings.IndexByte(from, c)
	if k < 0 {
		return nil, errSyntax
	}
	return append(b, to[k]), nil
}

// hex parses four hex digits.
func (p *parser) hex() (rune, error) {
	if p.i+4 > len(p.s) {
		return 0, errSyntax
	}
	v, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 32)
	if err != nil {
		return 0, errSyntax
	}
	p.i += 4
	return rune(v), nil
}

// number parses a number and returns its text.
func (p *parser) number() (string, error) {
	start := p.i
	for p.i < len(p.s) && strings.IndexByte("+-.eE0123456789", p.s[p.i]) >= 0 {
		p.i++
	}
	text := p.s[start:p.i]
	if _, err := strconv.ParseFloat(text, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return "", errSyntax
	}
	return text, nil
}

// toInt returns a JSON number as the service reads a Long: without its fraction, and limited to the
// range of int64.
func toInt(text string) int64 {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v
	}
	f, _ := strconv.ParseFloat(text, 64)
	switch {
	case f >= 1<<63:
		return 1<<63 - 1
	case f <= -(1 << 63):
		return -1 << 63
	}
	return int64(f)
}
