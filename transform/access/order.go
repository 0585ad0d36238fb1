package access

import (
	"cmp"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// order finds rows that do not come in the order of the items.
func (r *reach) order(f *findings) {
	if r.q.Get {
		return
	}
	if r.q.Index != "" && r.q.Key == nil {
		f.note("the sort key of index %s is not known, nor the order", r.q.Index)
		return
	}
	for _, s := range r.spans {
		s.order(r, f)
	}
	if len(r.spans) > 1 && !r.row() {
		r.rulesInOrder(f)
	}
}

// sortedBy returns the captures and attributes by which DynamoDB sorts the items of one rule: those
// of the sort key that the read does not fix.
func (s *span) sortedBy() (out []limited) {
	for _, attr := range s.q.Sort {
		switch {
		case captures(s.plan.Rule, attr):
			for _, c := range s.plan.Rule.Captures {
				if how := s.bound.Captures[c.Name]; c.Attr == attr && how != Is && c.Name != "" {
					out = append(out, limited{c.Name, attr, how})
				}
			}
		case !constant(s.plan.Rule, attr) && s.how(attr) != Is:
			out = append(out, limited{attr, attr, s.how(attr)})
		}
	}
	return out
}

// order finds why the rows of one rule do not come in the order of its items. Their keys go on with
// what DynamoDB sorts by; what follows only decides between equals.
func (s *span) order(r *reach, f *findings) {
	want := s.sortedBy()
	if len(want) == 0 {
		return // there is one item, or DynamoDB promises no order
	}
	sequences := [][]tmpl.Piece{s.pieces[s.fixed:]}
	if r.row() {
		sequences = s.columns()
	}
	for _, sequence := range sequences {
		if !s.sequence(want, sequence, f) {
			return
		}
	}
}

// columns returns the parts of each column that the items of a shared row have.
func (s *span) columns() (out [][]tmpl.Piece) {
	for _, e := range s.plan.Emitters {
		out = append(out, e.Qualifier.Pieces())
	}
	return out
}

// sequence finds why texts of these pieces do not sort like items; ok is false once it has found a
// reason.
func (s *span) sequence(want []limited, pieces []tmpl.Piece, f *findings) (ok bool) {
	var direction tmpl.Order
	at := 0
	for i := range pieces {
		p := &pieces[i]
		if p.Name == "" || s.how(p.Name) == Is && !p.Salt {
			continue
		}
		if p.Name != want[at].name && (p.Name != want[at].attr || at > 0) {
			f.disorder("%s sorts by %s, DynamoDB by {%s}", s.plan.Name, p.Source, want[at].name)
			return false
		}
		order := p.Order(s.number(p))
		switch {
		case order == tmpl.Unordered && (s.number(p) || len(p.Filters) > 0 && s.digits(p)):
			f.disorder("%s: %s does not sort like the numbers of DynamoDB", s.plan.Name, p.Source)
			return false
		case order == tmpl.Unordered, at > 0 && order != direction:
			f.disorder("%s: %s does not sort like its values", s.plan.Name, p.Source)
			return false
		}
		direction = order
		s.shorter(p, pieces[i+1:], f)
		if at++; at == len(want) || p.Name == want[at-1].attr {
			break
		}
	}
	switch {
	case direction == tmpl.Unordered:
		f.disorder("%s does not sort by {%s}", s.plan.Name, want[0].name)
	case direction == tmpl.Descending && !s.q.Backward:
		f.disorder("%s has the last first, the read asks for the first", s.plan.Name)
	case direction == tmpl.Ascending && s.q.Backward:
		f.disorder("the read asks for the last first, and %s is not reversed", s.plan.Name)
	default:
		return true
	}
	return false
}

// digits reports whether a piece reads digits out of a text, which DynamoDB sorts as text.
func (s *span) digits(p *tmpl.Piece) bool {
	c, ok := s.capture(p.Name)
	return ok && (!c.All || c.Type != 'N')
}

// shorter notes that what follows a text of any length changes the order of a value and a longer
// one that begins with it, if the longer goes on with a character below.
func (s *span) shorter(p *tmpl.Piece, next []tmpl.Piece, f *findings) {
	if len(next) == 0 || next[0].Literal == "" || p.Lowest >= next[0].Literal[0] {
		return
	}
	if c, ok := s.capture(p.Name); ok && strings.HasSuffix(textOf(s.plan.Rule, c.Attr), sources(next)) {
		return // the key of the item goes on alike
	}
	if next[0].Literal[0] != 0 { // segments: ordered
		f.except("if no %s has a character below %q", p.Source, next[0].Literal[:1])
	}
}

// sources returns the text of pieces in a template.
func sources(pieces []tmpl.Piece) string {
	var sb strings.Builder
	for i := range pieces {
		sb.WriteString(pieces[i].Source)
	}
	return sb.String()
}

// rulesInOrder finds rules with rows in another order than their items.
func (r *reach) rulesInOrder(f *findings) {
	if len(r.q.Sort) == 0 || r.goOnAlike() || r.endLike() {
		return // where they go on with the same part, each rule was found to sort by it
	}
	for i, a := range r.spans {
		for _, b := range r.spans[i+1:] {
			items, known := compareHeads(r.head(a.plan.Rule), r.head(b.plan.Rule))
			rows, told := compareHeads(a.behind(r.literal), b.behind(r.literal))
			switch {
			case !known || !told:
				f.disorder("items of rules %s and %s stand between each other in DynamoDB", a.plan.Rule.Name, b.plan.Rule.Name)
			case items != rows:
				f.disorder("rows of rule %s and of rule %s come in the other order", a.plan.Rule.Name, b.plan.Rule.Name)
			case r.q.Backward:
				f.disorder("the read asks for the last first, and rows of several rules are not reversed")
			}
		}
	}
}

// endLike reports whether the rows of all rules end with the sort key as it is, behind the same
// text.
func (r *reach) endLike() bool {
	if r.q.Backward {
		return false
	}
	var before []string
	for _, s := range r.spans {
		text, ok := strings.CutSuffix(sources(s.pieces[r.fixed:]), textOf(s.plan.Rule, r.q.Sort[0]))
		if !ok || len(before) > 0 && text != before[0] {
			return false
		}
		before = append(before, text)
	}
	return true
}

// head is what keys begin with; whole if that is all of them.
type head struct {
	text  string
	whole bool
}

// head returns what the sort keys of a rule begin with.
func (r *reach) head(rule *ir.Rule) head {
	const brace = "\x00"
	text, _, more := strings.Cut(strings.ReplaceAll(textOf(rule, r.q.Sort[0]), "{{", brace), "{")
	return head{strings.ReplaceAll(strings.ReplaceAll(text, brace, "{"), "}}", "}"), !more}
}

// behind returns what the keys of the span's rows go on with behind what all rows of the read
// share.
func (s *span) behind(shared string) head {
	if s.fixed >= len(s.pieces) {
		return head{"", true}
	}
	p := &s.pieces[s.fixed]
	return head{strings.TrimPrefix(p.Literal, shared), s.fixed == len(s.pieces)-1 && p.Name == ""}
}

// compareHeads compares keys by what they begin with; ok is false if that does not decide it.
func compareHeads(a, b head) (order int, ok bool) {
	switch {
	case strings.HasPrefix(b.text, a.text):
		return -1, a.whole
	case strings.HasPrefix(a.text, b.text):
		return 1, b.whole
	}
	return cmp.Compare(a.text, b.text), true
}
