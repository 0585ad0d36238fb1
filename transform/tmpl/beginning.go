package tmpl

import (
	"iter"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Shape returns a shape of the texts that the pattern matches.
func (p *Pattern) Shape() Shape { return p.shape }

// shapeOf returns the shape of a pattern.
func shapeOf(p *Pattern) (out Shape) {
	for i := range p.parts {
		switch part := &p.parts[i]; part.kind {
		case lang.Literal:
			out = append(out, Text(part.text)...)
		case lang.Same:
			out = append(out, anyByte)
		default:
			out = append(out, captureShape(Capture{Kind: part.kind}, p.delim)...)
		}
	}
	return out
}

// Whole reports whether the pattern is one capture of any text.
func (p *Pattern) Whole() bool { return len(p.parts) == 1 && p.parts[0].kind == lang.Any }

// Beginning is what the beginning of a text shows of the captures, whatever follows it.
type Beginning struct {
	Whole []int  // slots of the captures that end within it
	Open  int    // slot of the capture within which it ends; -1 if it ends beside one
	Part  string // what it shows of that capture
	Met   bool   // it reaches a capture, if only to differ from what that takes
	Sure  bool   // false: it limits further captures, in a way that is not known
	All   bool   // the pattern matches every text that begins so
}

// Begin returns what a text shows of the captures of every text that begins with it and that the
// pattern matches; ok is false if there is none, and then the text is shown up to where it differs
// from all of them. caps has the texts of the captures in known, of
// this pattern and of those before it; Begin adds those that end within the text.
func (p *Pattern) Begin(text string, caps []string, known []bool) (b Beginning, ok bool) {
	b = Beginning{Open: -1, Sure: true}
	rest := text
	for i := range p.parts {
		part := &p.parts[i]
		if rest == "" {
			b.All = i == len(p.parts)-1 && part.kind == lang.Any
			return b, true
		}
		switch part.kind {
		case lang.Literal, lang.Same:
			literal := part.text
			if part.kind == lang.Same {
				if literal = caps[part.slot]; !known[part.slot] {
					b.Sure = false
					return b, true
				}
			}
			n := min(len(rest), len(literal))
			if rest[:n] != literal[:n] {
				return b, false
			}
			rest = rest[n:]
			if n < len(literal) {
				return b, true
			}
		default:
			b.Met = true
			end, found := p.captureEnd(i, rest)
			switch {
			case found && !p.fits(part.kind, rest[:end]):
				return b, false
			case found:
				caps[part.slot], known[part.slot] = rest[:end], true
				b.Whole = append(b.Whole, part.slot)
				rest = rest[end:]
				continue
			case end < 0:
				b.Sure = false
				return b, true
			}
			b.Open, b.Part, b.All = part.slot, rest, i == len(p.parts)-1 && part.kind == lang.Any
			return b, p.fits(part.kind, rest)
		}
	}
	return b, rest == ""
}

// captureEnd returns where the capture of part i ends in a beginning of its text and of what
// follows. Without found it ends behind the beginning, or, where end is negative, that depends on
// what follows.
func (p *Pattern) captureEnd(i int, rest string) (end int, found bool) {
	if i == len(p.parts)-1 {
		return len(rest), false
	}
	next := &p.parts[i+1]
	if next.kind != lang.Literal {
		return -1, false
	}
	if end = strings.Index(rest, next.text); end < 0 {
		for n := 1; n < len(next.text) && n <= len(rest); n++ {
			if strings.HasSuffix(rest, next.text[:n]) {
				return -1, false // the literal may be cut off
			}
		}
		return len(rest), false
	}
	if !p.endsAtFirst(i, next.text) {
		return -1, false
	}
	return end, true
}

// endsAtFirst reports whether the capture of part i ends at the first occurrence of the literal
// behind it, whatever follows: it cannot hold the literal, or every later part takes what another
// end would leave to it.
func (p *Pattern) endsAtFirst(i int, literal string) bool {
	switch p.parts[i].kind {
	case lang.Digits:
		return strings.Trim(literal, "0123456789") != ""
	case lang.Segment:
		return strings.Contains(literal, p.delim)
	}
	if i+2 >= len(p.parts) {
		return false // the literal ends the text, and may occur before its end too
	}
	for _, later := range p.parts[i+2:] {
		if later.kind != lang.Literal && later.kind != lang.Any {
			return false
		}
	}
	return true
}

// longestBound is how many bytes of a bound From and To look at: the rest cannot make them miss a
// text, and their shapes grow with the square of it.
const longestBound = 32

// From returns shapes that together match every text from low on, and few others. Shapes of
// texts that are most like low come first.
func From(low string) iter.Seq[Shape] {
	low = low[:min(len(low), longestBound)]
	return func(yield func(Shape) bool) {
		if !yield(Beginnings(low)) {
			return
		}
		for i := len(low) - 1; i >= 0; i-- {
			if low[i] < 0xff && !yield(append(Text(low[:i]), State{Set: setBetween(low[i]+1, 0xff)}, anyByte)) {
				return
			}
		}
	}
}

// To returns shapes that together match every text up to high, and few others. Shapes of texts
// that are most like high come first.
func To(high string) iter.Seq[Shape] {
	last := Text(high)
	if len(high) > longestBound {
		high = high[:longestBound]
		last = Beginnings(high)
	}
	return func(yield func(Shape) bool) {
		if !yield(last) {
			return
		}
		for i := len(high) - 1; i >= 0; i-- {
			below := append(Text(high[:i]), State{Set: setBetween(0, max(high[i], 1)-1)}, anyByte)
			if !yield(below[:i]) || high[i] > 0 && !yield(below) {
				return
			}
		}
	}
}

// Beginnings is the shape of all texts that begin with a text.
func Beginnings(text string) Shape { return append(Text(text), anyByte) }

// setBetween returns the bytes from low to high.
func setBetween(low, high byte) (s Set) {
	for c := int(low); c <= int(high); c++ {
		s[c>>6] |= 1 << (c & 63)
	}
	return s
}
