package access

import (
	"iter"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Rules returns the rules that may take items with these keys, in the order of the mapping. What a
// rule tests of other attributes is left open, so that several rules may remain; a rule that takes
// all of them ends the list.
func Rules(p *ir.Program, tests []Test) (out []Bound) {
	for _, r := range p.Rules {
		if r.Unreachable || !inIndex(p, r, tests) {
			continue
		}
		m := matcher{rule: r, tests: tests, caps: make([]string, len(r.Captures)), known: make([]bool, len(r.Captures)),
			shown: map[string]How{}, all: r.When == nil}
		if !m.match() {
			continue
		}
		b := Bound{Rule: r.Name}
		if len(m.shown) > 0 {
			b.Captures = m.shown
		}
		if out = append(out, b); m.all {
			break
		}
	}
	return out
}

// inIndex reports whether items of a rule may have the attributes that are tested: they are part of
// the table's key, or the rule names them. Where no rule names an attribute, all may have it.
func inIndex(p *ir.Program, r *ir.Rule, tests []Test) bool {
	for _, t := range tests {
		if p.KeyType(t.Attr) != 0 || names(r, t.Attr) {
			continue
		}
		if slices.ContainsFunc(p.Rules, func(o *ir.Rule) bool { return names(o, t.Attr) }) {
			return false
		}
	}
	return true
}

// names reports whether a rule names an attribute, be it to leave it out.
func names(r *ir.Rule, attr string) bool {
	if r.Mentions(attr) {
		return true
	}
	for i := range r.Src.Ignore {
		if r.Src.Ignore[i].S == attr {
			return true
		}
	}
	for i := range r.Src.Match {
		if x := &r.Src.Match[i]; x.At.S == attr && (x.Exists == nil || *x.Exists) {
			return true
		}
	}
	for _, pl := range r.Plans {
		for _, e := range pl.Emitters {
			for i := range e.Entry.Except {
				if e.Entry.Except[i].S == attr {
					return true
				}
			}
		}
	}
	return false
}

// matcher finds what tests show of one rule's captures.
type matcher struct {
	rule  *ir.Rule
	tests []Test
	caps  []string
	known []bool // the captures with a text in caps
	shown map[string]How
	all   bool // the rule takes every item that meets the tests
}

// match reports whether an item that meets the tests may meet the rule's conditions.
func (m *matcher) match() bool {
	for i := range m.rule.Conditions {
		c := &m.rule.Conditions[i]
		at := slices.IndexFunc(m.tests, func(t Test) bool { return t.Attr == c.Attr })
		var possible bool
		switch {
		case at < 0:
			possible = m.untested(c)
		case c.Exists != nil && !*c.Exists:
			return false
		case len(m.tests[at].Values) == 0:
			possible = m.unknown(c, &m.tests[at])
		case m.tests[at].Op == Equal:
			possible = m.equal(c, &m.tests[at])
		default:
			possible = m.span(c, &m.tests[at])
		}
		if !possible {
			return false
		}
	}
	return true
}

// takesAny reports whether a condition holds for every value of its attribute.
func takesAny(c *ir.Condition) bool {
	return c.Equals == nil && c.In == nil && c.Type == "" && (c.Exists == nil || *c.Exists) &&
		(c.Pattern == nil || c.Pattern.Whole())
}

// untested handles an attribute without a test: every item has it if it is part of the table's key.
func (m *matcher) untested(c *ir.Condition) bool {
	m.all = m.all && c.Key && takesAny(c)
	return !c.Key || c.Exists == nil || *c.Exists
}

// unknown handles a test of a value that is not known.
func (m *matcher) unknown(c *ir.Condition, t *Test) bool {
	m.all = m.all && takesAny(c)
	how := howOf[t.Op]
	if how != Is && (c.Pattern == nil || !c.Pattern.Whole()) {
		how = Limited
	}
	m.showAll(c, how)
	return true
}

// equal handles a test of one value.
func (m *matcher) equal(c *ir.Condition, t *Test) bool {
	img := change.Image{{Name: t.Attr, Value: t.Values[0]}}
	if !c.Holds(img, m.caps) {
		return false
	}
	m.showAll(c, Is)
	for i := range m.rule.Captures {
		if m.rule.Captures[i].Attr == c.Attr {
			m.known[i] = true
		}
	}
	return true
}

// showAll notes what is shown of all captures of a condition.
func (m *matcher) showAll(c *ir.Condition, how How) {
	for i := range m.rule.Captures {
		if m.rule.Captures[i].Attr == c.Attr {
			m.shown[m.rule.Captures[i].Name] = how
		}
	}
}

// show notes what is shown of the capture in a slot.
func (m *matcher) show(slot int, how How) { m.shown[m.rule.Captures[slot].Name] = how }

// span handles a test of how a value begins, or of its bounds.
func (m *matcher) span(c *ir.Condition, t *Test) bool {
	texts := make([]string, len(t.Values))
	number := false
	for i := range t.Values {
		text, err := tmpl.Scalar(t.Attr, &t.Values[i])
		if err != nil {
			return false
		}
		texts[i] = text
		number = number || t.Values[i].Kind == change.KindNumber
	}
	switch {
	case c.Equals != nil:
		m.all = false
		return holds(t, texts, number, *c.Equals)
	case c.In != nil:
		m.all = false
		return slices.ContainsFunc(c.In, func(s string) bool { return holds(t, texts, number, s) })
	case c.Type != "" && c.Type != t.Values[0].Kind.String():
		return false
	case c.Pattern == nil:
		return true
	}
	known := func(slot int) (string, bool) { return m.caps[slot], m.known[slot] }
	if text, ok := c.Pattern.Text(known); ok {
		m.all = false
		return holds(t, texts, number, text)
	}
	switch {
	case number:
		m.all = m.all && c.Pattern.Whole()
		how := Within
		if i := slices.IndexFunc(m.rule.Captures, func(x tmpl.Capture) bool { return x.Attr == c.Attr }); i < 0 ||
			!m.rule.Captures[i].All {
			how = Limited
		}
		m.showAll(c, how)
		return true
	case t.Op == BeginsWith:
		return m.begins(c, texts[0])
	}
	return m.within(c, t.Op, texts)
}

// holds reports whether a text meets a test.
func holds(t *Test, texts []string, number bool, text string) bool {
	if number {
		return true // the bounds of numbers are not compared with texts of a mapping
	}
	switch t.Op {
	case BeginsWith:
		return strings.HasPrefix(text, texts[0])
	case Less:
		return text < texts[0]
	case LessEqual:
		return text <= texts[0]
	case More:
		return text > texts[0]
	case MoreEqual:
		return text >= texts[0]
	case Between:
		return text >= texts[0] && text <= texts[1]
	}
	return text == texts[0]
}

// begins handles the beginning of a text that a pattern matches.
func (m *matcher) begins(c *ir.Condition, text string) bool {
	if !tmpl.Overlap(tmpl.Beginnings(text), c.Pattern.Shape()) {
		return false
	}
	b, ok := c.Pattern.Begin(text, m.caps, m.known)
	if !ok {
		return false
	}
	m.all = m.all && b.All
	for _, slot := range b.Whole {
		m.show(slot, Is)
	}
	if b.Open >= 0 {
		m.show(b.Open, Begins)
	}
	if !b.Sure {
		m.limitOthers(c)
	}
	return true
}

// limitOthers notes that the captures of a condition of which nothing is known are limited.
func (m *matcher) limitOthers(c *ir.Condition) {
	for i := range m.rule.Captures {
		if name := m.rule.Captures[i].Name; m.rule.Captures[i].Attr == c.Attr && m.shown[name] == "" {
			m.shown[name] = Limited
		}
	}
}

// within handles the bounds of a text that a pattern matches. What both bounds begin with is the
// beginning of the text; a bound that ends before a capture does not limit it.
func (m *matcher) within(c *ir.Condition, op string, texts []string) bool {
	low, high := bounds(op, texts)
	if low != nil && !overlaps(tmpl.From(*low), c.Pattern) || high != nil && !overlaps(tmpl.To(*high), c.Pattern) {
		return false
	}
	if low == nil || high == nil {
		m.all = false
	} else if !m.begins(c, common(*low, *high)) {
		return false
	}
	for _, bound := range []*string{low, high} {
		if bound == nil {
			continue
		}
		known := slices.Clone(m.known)
		b, ok := c.Pattern.Begin(*bound, slices.Clone(m.caps), known)
		if !ok && !b.Met {
			continue // it stands beside all texts of the pattern
		}
		for _, slot := range append(b.Whole, b.Open) {
			if slot >= 0 && !m.known[slot] {
				m.show(slot, Within)
			}
		}
		if !b.Sure || !ok {
			m.limitOthers(c)
		}
	}
	return true
}

// overlaps reports whether a text of the pattern has one of the shapes.
func overlaps(shapes iter.Seq[tmpl.Shape], p *tmpl.Pattern) bool {
	for s := range shapes {
		if tmpl.Overlap(s, p.Shape()) {
			return true
		}
	}
	return false
}

// bounds returns the bounds of a range; nil where it has none.
func bounds(op string, texts []string) (low, high *string) {
	switch op {
	case Less, LessEqual:
		return nil, &texts[0]
	case More, MoreEqual:
		return &texts[0], nil
	}
	return &texts[0], &texts[1]
}

// common returns what two texts begin with.
func common(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
