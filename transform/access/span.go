package access

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// span is the rows of one rule that answer a read.
type span struct {
	q      *Query
	plan   *ir.Plan
	bound  *Bound
	pieces []tmpl.Piece // of the row's template
	fixed  int          // how many of them the read fixes, from the first on
	tail   How          // what the read shows of the next one, and its text shows too: Begins or Within
}

// newSpan returns the span of a plan for a read.
func newSpan(q *Query, pl *ir.Plan, b *Bound) *span {
	s := &span{q: q, plan: pl, bound: b, pieces: pl.Row.Pieces()}
	for i := range s.pieces {
		p := &s.pieces[i]
		if slices.ContainsFunc(p.Names, func(name string) bool { return s.how(name) != Is }) {
			s.tail = s.tailOf(p)
			break
		}
		s.fixed++
	}
	return s
}

// tailOf returns what the text of the first piece that is not fixed shows.
func (s *span) tailOf(p *tmpl.Piece) How {
	how := s.how(p.Name)
	switch {
	case p.Salt, how == Limited, how == Begins && !p.Keeps():
		return ""
	case how == Within && (p.Order(s.number(p)) == tmpl.Unordered || !s.leads(p.Name)):
		return ""
	}
	return how
}

// leads reports whether the read fixes what stands before a capture in its attribute. Else bounds
// of the attribute are none of the capture: "b#1" stands between "a#2" and "c#3".
func (s *span) leads(name string) bool {
	c, ok := s.capture(name)
	if !ok {
		return true
	}
	for _, o := range s.plan.Captures {
		switch {
		case o.Name == name:
			return true
		case o.Attr == c.Attr && s.how(o.Name) != Is:
			return false
		}
	}
	return true
}

// number reports whether a piece reads a number of DynamoDB.
func (s *span) number(p *tmpl.Piece) bool {
	c, ok := s.capture(p.Name)
	return p.Number || !ok && s.q.number(p.Name) || ok && c.All && s.q.number(c.Attr)
}

// capture returns the capture of a name.
func (s *span) capture(name string) (tmpl.Capture, bool) {
	i := slices.IndexFunc(s.plan.Captures, func(c tmpl.Capture) bool { return c.Name == name })
	if i < 0 {
		return tmpl.Capture{}, false
	}
	return s.plan.Captures[i], true
}

// how returns what the read shows of a capture or attribute; "" if it is free.
func (s *span) how(name string) How {
	if i := slices.IndexFunc(s.plan.Captures, func(c tmpl.Capture) bool { return c.Name == name }); i >= 0 {
		if i < s.plan.Rule.OwnCaptures {
			return s.bound.Captures[name]
		}
		t := s.q.test(s.plan.Captures[i].Attr) // of the index row's own conditions
		switch {
		case t == nil:
			return ""
		case t.Op == Equal:
			return Is
		}
		return Limited
	}
	if constant(s.plan.Rule, name) {
		return Is
	}
	if t := s.q.test(name); t != nil {
		return howOf[t.Op]
	}
	return ""
}

// constant reports whether all items of a rule have the same value of an attribute.
func constant(r *ir.Rule, attr string) bool {
	for i := range r.Conditions {
		c := &r.Conditions[i]
		if c.Attr == attr && (c.Equals != nil || c.Pattern != nil && !captures(r, attr)) {
			return true
		}
	}
	return false
}

// captures reports whether a rule cuts an attribute into captures.
func captures(r *ir.Rule, attr string) bool {
	return slices.ContainsFunc(r.Captures, func(c tmpl.Capture) bool { return c.Attr == attr })
}

// limited is what the read shows of one capture, or of an attribute that has none.
type limited struct {
	name string
	attr string
	how  How
}

// limits lists what the read limits, by its tests.
func (s *span) limits() (out []limited) {
	r := s.plan.Rule
	for i := range s.q.Tests {
		t := &s.q.Tests[i]
		switch {
		case captures(r, t.Attr):
			for _, c := range r.Captures {
				if how := s.bound.Captures[c.Name]; c.Attr == t.Attr && how != "" {
					out = append(out, limited{c.Name, c.Attr, how})
				}
			}
		case !constant(r, t.Attr):
			out = append(out, limited{t.Attr, t.Attr, howOf[t.Op]})
		}
	}
	return out
}

// fixes reports whether a fixed piece reads a capture, or the attribute of which it is cut; lossy
// that each of them writes several values alike.
func (s *span) fixes(l limited) (yes, lossy bool) {
	for i := range s.pieces[:s.fixed] {
		p := &s.pieces[i]
		_, captured := s.capture(l.attr)
		if p.Salt || p.Name != l.name && (p.Name != l.attr || captured) {
			continue
		}
		if yes, lossy = true, p.Lossy; !lossy {
			break
		}
	}
	return yes, lossy
}

// anchored reports whether the read fixes a part of the rows' keys that comes from the partition
// key: without one it would be a scan.
func (s *span) anchored() bool {
	if s.fixed == 0 {
		return false
	}
	partition := false
	for _, l := range s.limits() {
		if !s.q.partition(l.attr) {
			continue
		}
		if yes, _ := s.fixes(l); yes {
			return true
		}
		partition = true
	}
	return !partition
}

// reach is what one read returns: the rows of one or several rules that begin alike.
type reach struct {
	q       *Query
	spans   []*span
	fixed   int    // pieces that all of them share
	literal string // and text behind these
	tail    How
}

// join returns the longest read that holds the rows of all spans.
func join(q *Query, spans []*span) *reach {
	r := &reach{q: q, spans: spans, fixed: spans[0].fixed, tail: spans[0].tail}
	for i, s := range spans[1:] {
		fixed, literal := alike(spans[0], s)
		switch {
		case fixed < r.fixed || i == 0:
			r.literal = literal
		case fixed == r.fixed:
			r.literal = common(r.literal, literal)
		}
		r.fixed = min(r.fixed, fixed)
	}
	apart := func(s *span) bool { return s.fixed != r.fixed || s.tail != r.tail }
	if r.literal != "" || slices.ContainsFunc(spans, apart) || !r.goOnAlike() {
		r.tail = ""
	}
	for _, s := range spans {
		s.fixed, s.tail = r.fixed, r.tail
	}
	return r
}

// goOnAlike reports whether the keys of all rows go on with the same part of an attribute behind
// what they share.
func (r *reach) goOnAlike() bool {
	first := r.spans[0]
	for _, s := range r.spans {
		if r.fixed >= len(s.pieces) || s.pieces[r.fixed].Name == "" || r.literal != "" ||
			!sameValues(first, s, &first.pieces[r.fixed], &s.pieces[r.fixed]) {
			return false
		}
	}
	return true
}

// alike returns how many fixed pieces two spans share, and what the next ones begin with.
func alike(a, b *span) (n int, literal string) {
	for n < a.fixed && n < b.fixed {
		p, o := &a.pieces[n], &b.pieces[n]
		switch {
		case p.Name == "" && o.Name == "":
			if p.Literal != o.Literal {
				return n, common(p.Literal, o.Literal)
			}
		case p.Name == "" || o.Name == "" || !sameValues(a, b, p, o):
			return n, ""
		}
		n++
	}
	return n, ""
}

// sameValues reports whether a piece of two rules stands for the same values of the items of a
// read: it writes them alike, and they are cut out of the same attribute in the same way.
func sameValues(a, b *span, p, o *tmpl.Piece) bool {
	if !sameParts(a.plan, b.plan, p, o) {
		return false
	}
	for _, name := range p.Names {
		if c, captured := a.capture(name); captured && pattern(a.plan.Rule, c.Attr) != pattern(b.plan.Rule, c.Attr) {
			return false
		}
	}
	return true
}

// sameParts reports whether pieces of two rows write the same parts of the same attributes alike,
// whatever the names of captures.
func sameParts(a, b *ir.Plan, p, o *tmpl.Piece) bool {
	if p.Salt != o.Salt || !slices.Equal(p.Filters, o.Filters) || len(p.Names) != len(o.Names) {
		return false
	}
	for i := range p.Names {
		if sourceOf(a, p.Names[i]) != sourceOf(b, o.Names[i]) {
			return false
		}
	}
	return withoutNames(p) == withoutNames(o)
}

// withoutNames returns the source of a piece without the names of its references.
func withoutNames(p *tmpl.Piece) string {
	s := p.Source
	for _, name := range p.Names {
		s = strings.Replace(s, name, "", 1)
	}
	return s
}

// sourceOf returns where a name gets its text from: an attribute, and which of its captures.
func sourceOf(pl *ir.Plan, name string) string {
	counts := map[string]int{}
	for _, c := range pl.Captures {
		if counts[c.Attr]++; c.Name == name {
			return c.Attr + "\x00" + strconv.Itoa(counts[c.Attr])
		}
	}
	return name
}

// captureName is a capture in a pattern, with its name.
var captureName = regexp.MustCompile(`(\{=?)\w+`)

// pattern returns the pattern that a rule matches an attribute with, without the names of captures.
func pattern(r *ir.Rule, attr string) string {
	for i := range r.Src.Match {
		if c := &r.Src.Match[i]; c.At.S == attr {
			return captureName.ReplaceAllString(c.Pattern.S, "$1")
		}
	}
	return ""
}

// row reports whether the read is of one row.
func (r *reach) row() bool {
	return r.literal == "" && !slices.ContainsFunc(r.spans, func(s *span) bool { return len(s.pieces) != r.fixed })
}

// read returns the read as the mapping would write it.
func (r *reach) read() *Read {
	var key strings.Builder
	first := r.spans[0]
	for i := range r.fixed {
		key.WriteString(first.pieces[i].Source)
	}
	key.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(r.literal))
	out := &Read{How: "prefix", Key: key.String()}
	switch {
	case r.row():
		out.How = "row"
	case r.tail == Begins:
		out.Key += first.pieces[r.fixed].Source
	case r.tail == Within:
		bound := out.Key + first.pieces[r.fixed].Source
		out.How, out.Key = "range", bound+".."+bound
	}
	for _, s := range r.spans {
		out.Rows = append(out.Rows, s.plan.Name)
	}
	return out
}
