package lang

import (
	"fmt"
	"strings"
)

// Capture kinds of a pattern part.
const (
	Literal = iota // text as it stands
	Any            // {x}: as little as possible, or all the rest
	Digits         // {x:d}: one or more ASCII digits
	Segment        // {x:seg}: no delimiter inside
	Same           // {=x}: what x captured before
)

// PatternPart is a literal, a capture or a back-reference.
type PatternPart struct {
	Kind int
	Text string // literal text or the capture's name
}

// Pattern is a parsed `match` pattern.
type Pattern []PatternPart

// ParsePattern reads literal text with {x}, {x:d}, {x:seg} and {=x}; {{ and }} stand for braces.
func ParsePattern(s string) (Pattern, error) {
	var out Pattern
	err := split(s, func(literal string) {
		out = append(out, PatternPart{Literal, literal})
	}, func(inside string) error {
		name, kind, typed := strings.Cut(inside, ":")
		part := PatternPart{Any, name}
		switch {
		case strings.HasPrefix(inside, "="):
			part = PatternPart{Same, inside[1:]}
		case typed && kind == "d":
			part.Kind = Digits
		case typed && kind == "seg":
			part.Kind = Segment
		case typed:
			return fmt.Errorf("{%s}: %q is not a kind of capture; write {%s}, {%s:d} for digits or {%s:seg} for a segment",
				inside, kind, name, name, name)
		}
		if !identifier(part.Text) {
			return fmt.Errorf("{%s}: a capture's name has letters, digits and _ only", inside)
		}
		out = append(out, part)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, checkPattern(s, out)
}

// checkPattern refuses captures without text between them, and a name that is captured twice.
func checkPattern(s string, p Pattern) error {
	seen := map[string]bool{}
	for i, part := range p {
		if i > 0 && part.Kind == Any && p[i-1].Kind == Any {
			return fmt.Errorf("%q: {%s} and {%s} touch, so it is unknown where one ends; put a literal between them", s,
				p[i-1].Text, part.Text)
		}
		if part.Kind != Literal && part.Kind != Same {
			if seen[part.Text] {
				return fmt.Errorf("%q: {%s} is captured twice; write {=%s} where it must be the same again", s, part.Text,
					part.Text)
			}
			seen[part.Text] = true
		}
	}
	return nil
}

func identifier(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c|32 < 'a' || c|32 > 'z') {
			return false
		}
	}
	return true
}

// split cuts text into literals and the insides of braces.
func split(s string, literal func(string), inside func(string) error) error {
	var lit strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "{{") || strings.HasPrefix(s[i:], "}}"):
			lit.WriteByte(s[i])
			i++
		case s[i] == '}':
			return fmt.Errorf("%q: } without {; a brace as text is written }}", s)
		case s[i] == '{':
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				return fmt.Errorf("%q: { is never closed; a brace as text is written {{", s)
			}
			if lit.Len() > 0 {
				literal(lit.String())
				lit.Reset()
			}
			if err := inside(s[i+1 : i+end]); err != nil {
				return fmt.Errorf("%q: %w", s, err)
			}
			i += end
		default:
			lit.WriteByte(s[i])
		}
	}
	if lit.Len() > 0 {
		literal(lit.String())
	}
	return nil
}
