package access

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Place is where the rows of one read are: from the key Start on and before End. An application
// that makes its keys of the same parts reads the same rows.
type Place struct {
	Start, End string
	Row        bool // Start is the key of the only row
}

// Holds reports whether the row with a key is in the place.
func (p *Place) Holds(key string) bool {
	if p.Row {
		return key == p.Start
	}
	return key >= p.Start && (p.End == "" || key < p.End)
}

// Finder finds the rows of the reads of one form by the values of each.
type Finder struct {
	Verdict Verdict
	program *ir.Program
	reach   *reach // nil: no range holds the rows, or the mapping does not say which
}

// NewFinder returns the finder of the reads of a form, with the verdict of Judge or, for a read
// that the mapping declares, of JudgeDeclared.
func NewFinder(p *ir.Program, q Query, declared *ir.ReadPattern) *Finder {
	f := &Finder{program: p}
	if declared != nil {
		f.Verdict, f.reach = judgeDeclared(p, q, *declared)
	} else {
		f.Verdict, f.reach = judge(p, q)
	}
	if f.Verdict.Grade == NoRead {
		f.reach = nil
	}
	return f
}

// Finds reports whether Place can find the rows.
func (f *Finder) Finds() bool { return f.reach != nil }

// Row reports whether Place is always one row.
func (f *Finder) Row() bool { return f.reach.row() }

// Sort returns the first attribute that sorts the items of a partition; "" if there is none.
func (f *Finder) Sort() string {
	if len(f.reach.q.Sort) == 0 {
		return ""
	}
	return f.reach.q.Sort[0]
}

var errNoRule = errors.New("no rule of the read takes items with such a key")

// Place returns where the rows of a read are. The tests are the query's, with their values. An
// error means that the mapping makes no key of them.
func (f *Finder) Place(tests []Test) (Place, error) {
	for _, s := range f.reach.spans {
		v := f.values(s, tests)
		if v == nil {
			continue
		}
		place, err := v.place(f.reach)
		if err != nil {
			return Place{}, fmt.Errorf("make a key of %s: %w", s.plan.Name, err)
		}
		return place, nil
	}
	return Place{}, errNoRule
}

// RowOf returns the key of the row by which the read finds an item; ok is false if no rule of the
// read takes the item, or the item has no such row. An item may have others in the same place.
func (f *Finder) RowOf(item change.Image) (key string, ok bool) {
	x := f.program.NewEval()
	x.Scope.Image = item
	rule, err := f.program.RuleOf(x)
	if err != nil {
		return "", false
	}
	i := slices.IndexFunc(f.reach.spans, func(s *span) bool { return s.plan.Rule == rule })
	if i < 0 {
		return "", false
	}
	plan := f.reach.spans[i].plan
	if has, err := ir.Matches(plan.Conditions, plan.When, item, x.Captures); err != nil || !has {
		return "", false
	}
	row, err := plan.Row.Append(nil, &x.Scope)
	return string(row), err == nil
}

// values are what one read shows of the items of a span.
type values struct {
	span  *span
	tests []Test
	scope tmpl.Scope
	known []bool // the captures that have a value
}

// values returns the values of a read; nil if no item of the rule meets it.
func (f *Finder) values(s *span, tests []Test) *values {
	x := f.program.NewEval()
	v := &values{span: s, tests: tests, known: make([]bool, len(x.Captures))}
	v.scope.Caps = x.Captures
	m := matcher{rule: s.plan.Rule, tests: tests, caps: v.scope.Caps, known: v.known, shown: map[string]How{}}
	if !m.match() {
		return nil
	}
	for i := range tests {
		if t := &tests[i]; t.Op == Equal {
			v.scope.Image = append(v.scope.Image, change.Attr{Name: t.Attr, Value: t.Values[0]})
		}
	}
	for i := range s.plan.Rule.Conditions {
		c := &s.plan.Rule.Conditions[i]
		if text, ok := v.only(c); ok && v.scope.Image.Get(c.Attr) == nil {
			v.scope.Image = append(v.scope.Image,
				change.Attr{Name: c.Attr, Value: change.Value{Kind: change.KindString, S: text}})
		}
	}
	for i := range s.plan.Conditions { // the captures of an index row
		s.plan.Conditions[i].Holds(v.scope.Image, v.scope.Caps)
	}
	return v
}

// only returns the value that all items have which meet a condition, if it allows one alone.
func (v *values) only(c *ir.Condition) (text string, ok bool) {
	switch {
	case c.Equals != nil:
		return *c.Equals, true
	case c.Pattern != nil:
		return c.Pattern.Text(func(slot int) (string, bool) { return v.scope.Caps[slot], v.known[slot] })
	}
	return "", false
}

// place returns where the rows are.
func (v *values) place(r *reach) (p Place, err error) {
	prefix, err := v.span.plan.Row.AppendPieces(nil, &v.scope, r.fixed)
	if err != nil {
		return p, err
	}
	p.Start = string(prefix) + r.literal
	p.End, p.Row = behind(p.Start), r.row()
	if p.Row || r.tail == "" {
		return p, nil
	}
	piece := &v.span.pieces[r.fixed]
	attr := piece.Name
	if c, ok := v.span.capture(attr); ok {
		attr = c.Attr
	}
	i := slices.IndexFunc(v.tests, func(t Test) bool { return t.Attr == attr })
	if i < 0 {
		return p, nil
	}
	return v.limit(p, piece, &v.tests[i], r.fixed+1)
}

// limit narrows a place to what a test shows of the part that its keys go on with.
func (v *values) limit(p Place, piece *tmpl.Piece, t *Test, pieces int) (Place, error) {
	keys := make([]*string, len(t.Values))
	for i := range t.Values {
		key, err := v.key(piece, t, &t.Values[i], pieces)
		if err != nil {
			return p, err
		}
		keys[i] = key
	}
	low, high := keys[0], keys[len(keys)-1]
	switch t.Op {
	case Less, LessEqual:
		low = nil
	case More, MoreEqual:
		high = nil
	}
	if t.Op != BeginsWith && piece.Order(v.span.number(piece)) == tmpl.Descending {
		low, high = high, low
	}
	if low != nil {
		p.Start = *low
	}
	if high != nil {
		p.End = behind(*high)
	}
	if p.End != "" && p.Start >= p.End {
		return p, errors.New("the rows of its bounds come in the other order")
	}
	return p, nil
}

// key returns the key of rows up to a bound or beginning of a value; nil if that does not limit the
// part of the value that the keys go on with.
func (v *values) key(piece *tmpl.Piece, t *Test, bound *change.Value, pieces int) (*string, error) {
	scope := v.scope
	if slot := slices.IndexFunc(v.span.plan.Captures,
		func(c tmpl.Capture) bool { return c.Name == piece.Name }); slot >= 0 {
		text, ok := v.part(slot, t.Attr, bound)
		if !ok {
			return nil, nil
		}
		scope.Caps = slices.Clone(scope.Caps)
		scope.Caps[slot] = text
	} else {
		scope.Image = append(slices.Clone(scope.Image), change.Attr{Name: t.Attr, Value: *bound})
	}
	key, err := v.span.plan.Row.AppendPieces(nil, &scope, pieces)
	text := string(key)
	return &text, err
}

// part returns what a bound or beginning of a value shows of one capture; ok is false if it shows
// nothing.
func (v *values) part(slot int, attr string, bound *change.Value) (part string, ok bool) {
	text, err := tmpl.Scalar(attr, bound)
	if err != nil {
		return "", false
	}
	for i := range v.span.plan.Rule.Conditions {
		c := &v.span.plan.Rule.Conditions[i]
		if c.Attr != attr || c.Pattern == nil {
			continue
		}
		caps := slices.Clone(v.scope.Caps)
		b, _ := c.Pattern.Begin(text, caps, slices.Clone(v.known))
		switch {
		case b.Open == slot:
			return b.Part, true
		case slices.Contains(b.Whole, slot):
			return caps[slot], true
		}
	}
	return "", false
}

// behind returns the first key behind all that begin with a text; "" if there is none.
func behind(text string) string {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] < 0xff {
			return text[:i] + string([]byte{text[i] + 1})
		}
	}
	return ""
}
