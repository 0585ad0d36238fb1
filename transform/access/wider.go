package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// findings are the reasons of a verdict, by what they do to the grade.
type findings struct {
	wider []string
	order []string
	notes []string // what depends on data

	byValues bool // the grade does not hold for values that a note names
}

func (f *findings) widen(format string, args ...any) { add(&f.wider, fmt.Sprintf(format, args...)) }
func (f *findings) note(format string, args ...any)  { add(&f.notes, fmt.Sprintf(format, args...)) }

// except notes values for which the grade does not hold.
func (f *findings) except(format string, args ...any) {
	f.byValues = true
	f.note(format, args...)
}

func (f *findings) disorder(format string, args ...any) {
	add(&f.order, fmt.Sprintf(format, args...))
}

// add adds a reason once.
func add(to *[]string, reason string) {
	if !slices.Contains(*to, reason) {
		*to = append(*to, reason)
	}
}

// limits finds what the read limits and its range does not.
func (r *reach) limits(f *findings) {
	for _, s := range r.spans {
		for _, l := range s.limits() {
			yes, lossy := s.fixes(l)
			switch {
			case l.how == Is && yes && lossy:
				f.widen("{%s} is the same text for several values", l.name)
			case l.how == Is && yes, r.tail != "" && s.tailShows(l):
			case r.q.Get && r.row(): // the item is known by its columns
			default:
				f.widen("%s: the key is not limited by {%s}, which %s", s.plan.Name, l.name, shows[l.how])
			}
		}
	}
}

// shows names what a read shows of a value.
var shows = map[How]string{Is: "the read fixes", Begins: "the read fixes the beginning of",
	Within: "the read gives bounds of", Limited: "the read limits"}

// tailShows reports whether the open end of the read limits a capture as the request does.
func (s *span) tailShows(l limited) bool {
	p := &s.pieces[s.fixed]
	if p.Name == l.name || p.Name == l.attr {
		return l.how == s.tail
	}
	return l.how == Within && s.tail == Within && s.endsLike(l.attr)
}

// endsLike reports whether the row's key goes on as a key attribute does, from its first capture
// that is not fixed on: they then sort alike, and bounds of one are bounds of the other.
func (s *span) endsLike(attr string) bool {
	var sb strings.Builder
	for i := range s.pieces[s.fixed:] {
		p := &s.pieces[s.fixed+i]
		if len(p.Filters) > 0 || p.Number || p.Salt {
			return false
		}
		sb.WriteString(p.Source)
	}
	return sb.Len() > 0 && strings.HasSuffix(textOf(s.plan.Rule, attr), sb.String())
}

// textOf returns what a rule makes of an attribute, as a template.
func textOf(r *ir.Rule, attr string) string {
	for i := range r.Src.Match {
		c := &r.Src.Match[i]
		if c.At.S != attr {
			continue
		}
		if c.Equals.Set() {
			return strings.NewReplacer("{", "{{", "}", "}}").Replace(c.Equals.S)
		}
		return strings.NewReplacer(":d}", "}", ":seg}", "}", "{=", "{").Replace(c.Pattern.S)
	}
	return "{" + attr + "}"
}

// separated finds ranges that begin with a value, but do not show its end.
func (r *reach) separated(f *findings) {
	if r.row() || r.tail != "" || r.fixed == 0 {
		return
	}
	last := &r.spans[0].pieces[r.fixed-1]
	switch {
	case !last.GoesOn(r.literal):
	case r.literal == "":
		f.widen("the range also holds rows in which %s only begins so", last.Source)
	default:
		f.except("if no %s holds %q", last.Source, r.literal)
	}
}

// sparse finds rows of items that the index does not have, because they lack an attribute of its
// key.
func (r *reach) sparse(f *findings) {
	if r.q.Index == "" {
		return
	}
	for _, s := range r.spans {
		for _, k := range r.q.Key {
			if !s.tableKey(k.Name) && !s.requires(k.Name) {
				f.widen("the range also holds items of %s without %s, which are not in the index", s.plan.Rule.Name, k.Name)
				return
			}
		}
	}
}

// others finds rows of other rules and indexes in the range, and returns the families to read where
// that keeps them out.
func (r *reach) others(p *ir.Program, f *findings) (families []string) {
	mine := r.families()
	first := r.spans[0]
	shape := append(first.plan.Row.ShapeOf(r.fixed), tmpl.Text(r.literal)...)
	if !r.row() {
		shape = append(shape, tmpl.Beginnings("")...)
	}
	for _, rule := range p.Rules {
		for _, pl := range rule.Plans {
			if rule.Unreachable || r.holds(pl) || !tmpl.Overlap(shape, pl.Row.Shape) {
				continue
			}
			switch begins, apart := r.begins(pl); {
			case apart:
			case !begins:
				f.except("if no row of %s begins alike", pl.Name)
			case r.q.Get, !slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool { return writes(e, mine) }):
				families = mine
			default:
				where := "range"
				if r.row() {
					where = "row"
				}
				f.widen("the %s also holds cells of %s", where, pl.Name)
			}
		}
	}
	return families
}

// holds reports whether a plan is one of those that answer the read.
func (r *reach) holds(pl *ir.Plan) bool {
	return slices.ContainsFunc(r.spans, func(s *span) bool { return s.plan == pl })
}

// begins reports whether the rows of a plan begin with what the read fixes; apart that they begin
// with another text at the same place.
func (r *reach) begins(pl *ir.Plan) (begins, apart bool) {
	pieces := pl.Row.Pieces()
	first := r.spans[0]
	for i := range r.fixed {
		switch p := &first.pieces[i]; {
		case i >= len(pieces):
			return false, false
		case p.Name == "" && p.Source == pieces[i].Source:
		case p.Name != "" && pieces[i].Name != "" && sameParts(first.plan, pl, p, &pieces[i]):
		case p.Name == "" && pieces[i].Name == "" && strings.HasPrefix(pieces[i].Literal, p.Literal) && i == r.fixed-1:
		case p.Name == "" && pieces[i].Name == "":
			return false, true
		default:
			return false, false
		}
	}
	if r.literal != "" && (len(pieces) <= r.fixed || !strings.HasPrefix(pieces[r.fixed].Literal, r.literal)) {
		return false, true
	}
	return !r.row() || len(pieces) == r.fixed, false
}

// families returns the families that the rows of the read write.
func (r *reach) families() (out []string) {
	for _, s := range r.spans {
		for _, e := range s.plan.Emitters {
			for _, c := range e.Columns() {
				add(&out, c.Family.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// writes reports whether an emitter writes one of the families.
func writes(e *ir.Emitter, families []string) bool {
	return slices.ContainsFunc(e.Columns(), func(c ir.ColumnSet) bool { return slices.Contains(families, c.Family.Name) })
}
