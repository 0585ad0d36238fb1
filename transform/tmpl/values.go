package tmpl

import (
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Values takes the texts of references out of a text of the template: the inverse of Append, as far
// as there is one. References with filters are passed over; ok is false where their end cannot be
// found, or the template cannot give the text. Values may be wrong where the template is ambiguous:
// the caller maps them again.
func (t *Template) Values(text string) (values map[string]string, ok bool) {
	values = map[string]string{}
	for i := range t.ops {
		o := &t.ops[i]
		if o.kind == srcLiteral {
			if text, ok = strings.CutPrefix(text, o.lit); !ok {
				return nil, false
			}
			continue
		}
		end := len(text)
		if i < len(t.ops)-1 {
			end = o.end(text)
		}
		if end < 0 || end > len(text) {
			return nil, false
		}
		if o.kind != srcSalt && len(o.filters) == 0 {
			values[o.name] = o.plain(text[:end])
		}
		text = text[end:]
	}
	return values, text == ""
}

// end returns where the text of a reference ends that is not the last part; -1 where that is not
// known.
func (o *op) end(text string) int {
	switch {
	case o.kind == srcSalt:
		return o.width
	case o.fixed:
		return len(o.shape)
	case o.stop == "":
		return -1
	case o.mode != SegOrdered:
		return strings.Index(text, o.stop)
	}
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "\x00\xff"): // a 00 of the value
			i++
		case text[i] == 0:
			return i
		}
	}
	return -1
}

// plain returns a value as it was before it was separated from what follows.
func (o *op) plain(text string) string {
	switch o.mode {
	case SegEscape:
		return Unescape(text)
	case SegOrdered:
		return strings.ReplaceAll(text, "\x00\xff", "\x00")
	}
	return text
}

// Text returns the text that the pattern matches with the given captures; ok is false where one is
// missing. It is the inverse of Match.
func (p *Pattern) Text(capture func(slot int) (string, bool)) (text string, ok bool) {
	var b strings.Builder
	for i := range p.parts {
		part := &p.parts[i]
		if part.kind != lang.Literal {
			value, ok := capture(part.slot)
			if !ok {
				return "", false
			}
			b.WriteString(value)
			continue
		}
		b.WriteString(part.text)
	}
	return b.String(), true
}
