package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Judge returns how the rows of a program answer a read. Rows of other tables of the same target
// are not looked at.
func Judge(p *ir.Program, q Query) Verdict {
	v, _ := judge(p, q)
	return v
}

// judge returns the verdict on a read, and where its rows are; nil where no read reaches them.
func judge(p *ir.Program, q Query) (Verdict, *reach) {
	q.complete(p)
	rules, dropped := q.split(p)
	switch {
	case len(rules) > 0:
	case len(dropped) > 0:
		return Verdict{Grade: NoRead, Why: "the mapping drops the items of " + namesOf(dropped)}, nil
	default:
		return Verdict{Grade: NoRead, Why: "no rule takes such items"}, nil
	}
	best, reached := q.best(p, rules)
	if best.Grade == NoRead {
		var why string
		if best.Index, why = propose(p, &q, rules); why != "" {
			best.Why += "; " + why
		}
	}
	if len(dropped) > 0 {
		best.Why += "; items of " + namesOf(dropped) + " are left out on purpose"
	}
	return best, reached
}

// best returns the verdict on the rows that answer a read best, and where they are; nil where no
// read reaches them.
func (q *Query) best(p *ir.Program, rules []*ir.Rule) (best Verdict, reached *reach) {
	for i, plans := range candidates(rules) {
		if v, r := q.judge(p, q.spans(plans), nil); i == 0 || rank[v.Grade] < rank[best.Grade] {
			best, reached = v, r
		}
	}
	return best, reached
}

// JudgeDeclared returns how the read that the mapping declares answers a read of DynamoDB. Where
// its key is not made of what the read fixes, its author's word counts.
func JudgeDeclared(p *ir.Program, q Query, declared ir.ReadPattern) Verdict {
	v, _ := judgeDeclared(p, q, declared)
	return v
}

// judgeDeclared returns the verdict on a declared read, and where its rows are; nil where only its
// author can make the key.
func judgeDeclared(p *ir.Program, q Query, declared ir.ReadPattern) (Verdict, *reach) {
	q.complete(p)
	rules, _ := q.split(p)
	for _, plans := range candidates(rules) {
		spans := q.spans(plans)
		if at, ok := declaredPlace(spans[0], declared); ok {
			if v, r := q.judge(p, spans, at); v.Read != nil && v.Read.How == declared.How {
				v.Declared = declared.Name
				return v, r
			}
		}
	}
	return Verdict{Grade: Served, Why: "`reads` declares it", Declared: declared.Name,
		Read: &Read{How: declared.How, Key: declared.Key}}, nil
}

// complete adds what Judge takes from the program.
func (q *Query) complete(p *ir.Program) {
	s := p.Table.Schema
	keys := []string{s.Partition.Name}
	if s.Sort != nil {
		keys = append(keys, s.Sort.Name)
	}
	q.tableKey = keys
	if q.Index == "" && q.Key == nil {
		q.Key, q.Sort = append(q.Key, s.Partition), keys[1:]
		if s.Sort != nil {
			q.Key = append(q.Key, *s.Sort)
		}
	}
	if q.Rules == nil {
		q.Rules = Rules(p, q.Tests)
	}
}

// split returns the rules of a read that write rows, and those that drop their items.
func (q *Query) split(p *ir.Program) (rules, dropped []*ir.Rule) {
	for i := range q.Rules {
		at := slices.IndexFunc(p.Rules, func(r *ir.Rule) bool { return r.Name == q.Rules[i].Rule })
		switch {
		case at < 0:
		case len(p.Rules[at].Plans) == 0:
			dropped = append(dropped, p.Rules[at])
		default:
			rules = append(rules, p.Rules[at])
		}
	}
	return rules, dropped
}

// candidates returns the sets of rows that may answer a read: a row of each of its rules.
func candidates(rules []*ir.Rule) (out [][]*ir.Plan) {
	if len(rules) == 0 {
		return nil
	}
	for i, pl := range rules[0].Plans {
		if len(rules) == 1 {
			out = append(out, []*ir.Plan{pl})
		} else if plans := plansNamed(rules, indexName(pl)); plans != nil && (i == 0 || indexName(pl) != "") {
			out = append(out, plans)
		}
	}
	return out
}

// spans returns the spans of rows for the read.
func (q *Query) spans(plans []*ir.Plan) (out []*span) {
	for _, pl := range plans {
		i := slices.IndexFunc(q.Rules, func(b Bound) bool { return b.Rule == pl.Rule.Name })
		out = append(out, newSpan(q, pl, &q.Rules[i]))
	}
	return out
}

// place is how much of the rows' keys a declared read fixes.
type place struct {
	pieces  int
	literal string
}

// declaredPlace returns the place in a row's key up to which a declared read fixes it; ok is false
// if that is not made of the same parts.
func declaredPlace(s *span, declared ir.ReadPattern) (*place, bool) {
	parts, err := lang.ParseTemplate(declared.Key)
	if err != nil || declared.How == "range" {
		return nil, false
	}
	for i, part := range parts {
		if i >= len(s.pieces) {
			return nil, false
		}
		p := &s.pieces[i]
		switch {
		case p.Source == part.String():
		case i == len(parts)-1 && part.Name == "" && p.Name == "" && strings.HasPrefix(p.Source, part.String()):
			return &place{i, part.Literal}, true
		default:
			return nil, false
		}
	}
	return &place{pieces: len(parts)}, true
}

// judge returns the verdict on the rows of some spans, read as far as they are fixed or, with a
// place, up to there.
func (q *Query) judge(p *ir.Program, spans []*span, at *place) (Verdict, *reach) {
	for _, s := range spans {
		if why := s.partial(); why != "" && at == nil {
			return Verdict{Grade: NoRead, Why: why}, nil
		}
	}
	r := join(q, spans)
	if at != nil && !r.cut(at) {
		return Verdict{Grade: NoRead}, nil
	}
	for _, s := range spans {
		if !s.anchored() {
			return Verdict{Grade: NoRead, Why: r.apart()}, nil
		}
	}
	f := &findings{}
	r.limits(f)
	r.separated(f)
	r.sparse(f)
	families := r.others(p, f)
	r.order(f)
	r.onlyThese(p, f)
	v := Verdict{Grade: Served, Read: r.read()}
	v.Read.Families = families
	reasons := append(f.wider, f.order...)
	switch {
	case len(f.wider) > 0:
		v.Grade = WiderRange
	case len(f.order) > 0:
		v.Grade = OrderDiffers
	}
	v.Why, v.ByValues = strings.Join(append(reasons, f.notes...), "; "), f.byValues
	return v, r
}

// onlyThese notes that a read of an index is judged as if only the rules that name its attributes
// have items in it.
func (r *reach) onlyThese(p *ir.Program, f *findings) {
	tests := r.q.Tests
	outside := func(x *ir.Rule) bool { return !x.Unreachable && !inIndex(p, x, tests) }
	if r.q.Index != "" && slices.ContainsFunc(p.Rules, outside) {
		rules, dropped := r.q.split(p)
		f.note("if only items of %s have %s", namesOf(append(rules, dropped...)), tests[0].Attr)
	}
}

// cut shortens the read to a place; false if that fixes more than the request does.
func (r *reach) cut(at *place) bool {
	if at.pieces > r.fixed || at.pieces == r.fixed && len(at.literal) > len(r.literal) {
		return false
	}
	if at.pieces < r.fixed || at.literal != r.literal {
		r.tail = ""
	}
	r.fixed, r.literal = at.pieces, at.literal
	for _, s := range r.spans {
		s.fixed, s.tail = r.fixed, r.tail
	}
	return true
}

// apart returns why no range holds the rows of a read.
func (r *reach) apart() string {
	s := r.spans[0]
	if len(r.spans) > 1 {
		var rows []string
		for _, s := range r.spans {
			rows = append(rows, s.plan.Row.Source)
		}
		return "its rows are in several places: " + strings.Join(rows, ", ")
	}
	for i := range s.pieces {
		for _, name := range s.pieces[i].Names {
			if s.how(name) != Is {
				return fmt.Sprintf("rows of %s are %s, and the read does not fix {%s}", s.plan.Name, s.plan.Row.Source, name)
			}
		}
	}
	return "rows of " + s.plan.Name + " are " + s.plan.Row.Source + ", without the partition key of the read"
}

// namesOf lists rules by name.
func namesOf(rules []*ir.Rule) string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.Name
	}
	word := "rule "
	if len(names) > 1 {
		word = "rules "
	}
	return word + strings.Join(names, ", ")
}
