package tmpl

import (
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Set is a set of bytes.
type Set [4]uint64

func (s Set) meets(t Set) bool { return s[0]&t[0]|s[1]&t[1]|s[2]&t[2]|s[3]&t[3] != 0 }

func (s Set) without(c byte) Set {
	s[c>>6] &^= 1 << (c & 63)
	return s
}

func setOf(chars string) (s Set) {
	for i := range len(chars) {
		s[chars[i]>>6] |= 1 << (chars[i] & 63)
	}
	return s
}

var (
	digitSet   = setOf("0123456789")
	hexSet     = setOf("0123456789abcdef")
	integerSet = setOf("-0123456789")
	allBytes   = Set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	anyByte    = State{Set: allBytes, Star: true}
)

// State stands for one byte out of a set or, with Star, any number of them.
type State struct {
	Set  Set
	Star bool
}

// Shape is a sequence of states that matches every text that a template can give, and perhaps more.
type Shape []State

// Text is the shape of literal text.
func Text(s string) Shape {
	out := make(Shape, 0, len(s))
	for i := range len(s) {
		out = append(out, State{Set: setOf(s[i : i+1])})
	}
	return out
}

func (s Shape) fixed() bool {
	for _, st := range s {
		if st.Star {
			return false
		}
	}
	return true
}

// bytes returns every byte that a text of the shape may hold.
func (s Shape) bytes() (all Set) {
	for _, st := range s {
		for w := range all {
			all[w] |= st.Set[w]
		}
	}
	return all
}

func (s Set) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

// without returns the shape with a byte removed from the states that may repeat.
func (s Shape) without(c byte) Shape {
	out := append(Shape(nil), s...)
	for i := range out {
		if out[i].Star {
			out[i].Set = out[i].Set.without(c)
		}
	}
	return out
}

// escaped returns the shape with the byte and % replaced by their escapes in the states that may
// repeat.
func (s Shape) escaped(c byte) Shape {
	out, special := s.without(c), Set{}
	special[c>>6] |= 1 << (c & 63)
	special['%'>>6] |= 1 << ('%' & 63)
	escapes := setOf(Escaping)
	for i := range out {
		if out[i].Star && s[i].Set.meets(special) {
			for w := range escapes {
				out[i].Set[w] |= escapes[w]
			}
		}
	}
	return out
}

// Overlap reports whether some text has both shapes. False is a proof; true may be overcautious,
// since shapes are supersets.
func Overlap(a, b Shape) bool {
	seen := make([]bool, (len(a)+1)*(len(b)+1))
	var walk func(i, j int) bool
	walk = func(i, j int) bool {
		if at := i*(len(b)+1) + j; seen[at] {
			return false
		} else {
			seen[at] = true
		}
		if i == len(a) && j == len(b) {
			return true
		}
		if i < len(a) && a[i].Star && walk(i+1, j) {
			return true
		}
		if j < len(b) && b[j].Star && walk(i, j+1) {
			return true
		}
		if i == len(a) || j == len(b) || !a[i].Set.meets(b[j].Set) {
			return false
		}
		ni, nj := i+1, j+1
		if a[i].Star {
			ni = i
		}
		if b[j].Star {
			nj = j
		}
		return walk(ni, nj)
	}
	return walk(0, 0)
}

// captureShape returns the shape of a capture's text.
func captureShape(c Capture, delim string) Shape {
	switch {
	case c.Kind == lang.Digits:
		return Shape{{Set: digitSet}, {Set: digitSet, Star: true}}
	case c.Kind == lang.Segment && len(delim) == 1:
		return Shape{{Set: allBytes.without(delim[0]), Star: true}}
	case c.All && c.Type == 'N':
		return Shape{{Set: setOf("0123456789-+.E"), Star: true}}
	}
	return Shape{anyByte}
}
