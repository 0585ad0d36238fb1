package tmpl

import (
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Capture is a named part of an attribute, cut out by a rule's pattern.
type Capture struct {
	Name string
	Kind int    // lang.Any, lang.Digits, lang.Segment
	Attr string // the attribute it is cut from
	Key  bool   // that attribute is part of the primary key
	Type byte   // type of that key attribute
	All  bool   // the capture is the whole attribute
}

// Pattern is a compiled pattern. Its captures go to fixed slots.
type Pattern struct {
	parts []patternPart
	delim string
	shape Shape // of the texts that it matches
}

type patternPart struct {
	kind int
	text string
	slot int
}

// NewPattern compiles a pattern; slot returns the slot of a capture.
func NewPattern(p lang.Pattern, delim string, slot func(name string) int) *Pattern {
	out := &Pattern{delim: delim}
	for _, part := range p {
		c := patternPart{kind: part.Kind, text: part.Text}
		if part.Kind != lang.Literal {
			c.slot = slot(part.Text)
		}
		out.parts = append(out.parts, c)
	}
	out.shape = shapeOf(out)
	return out
}

// Match reports whether the pattern matches the whole text, and fills caps. {x} takes as little
// text as lets the whole match.
func (p *Pattern) Match(text string, caps []string) bool { return p.match(0, text, caps) }

// match matches the parts from i on with the rest of the text, trying longer captures until the
// whole fits.
func (p *Pattern) match(i int, rest string, caps []string) bool {
	if i == len(p.parts) {
		return rest == ""
	}
	part := &p.parts[i]
	switch part.kind {
	case lang.Literal:
		return strings.HasPrefix(rest, part.text) && p.match(i+1, rest[len(part.text):], caps)
	case lang.Same:
		same := caps[part.slot]
		return strings.HasPrefix(rest, same) && p.match(i+1, rest[len(same):], caps)
	}
	if i == len(p.parts)-1 {
		caps[part.slot] = rest
		return p.fits(part.kind, rest)
	}
	next := &p.parts[i+1]
	for n := 0; n <= len(rest); n++ {
		if next.kind == lang.Literal {
			at := strings.Index(rest[n:], next.text)
			if at < 0 {
				return false
			}
			n += at
		}
		if !p.fits(part.kind, rest[:n]) {
			if part.kind == lang.Digits && n == 0 {
				continue
			}
			return false // every longer text contains the same mismatch
		}
		caps[part.slot] = rest[:n]
		if p.match(i+1, rest[n:], caps) {
			return true
		}
	}
	return false
}

func (p *Pattern) fits(kind int, s string) bool {
	switch kind {
	case lang.Digits:
		return digits(s)
	case lang.Segment:
		return !strings.Contains(s, p.delim)
	}
	return true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
