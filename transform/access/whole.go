package access

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// partial returns why some items of the read have no row of the plan; "" if all have one.
func (s *span) partial() string {
	pl, r := s.plan, s.plan.Rule
	if pl == r.Plans[0] {
		return "" // an item without it would be a dead letter
	}
	if pl.When != nil && !s.exists(pl.When.Source) {
		return pl.Name + " has rows only for items of which `when` holds"
	}
	for i := range pl.Conditions {
		if c := &pl.Conditions[i]; !takesAny(c) || !s.present(c.Attr) {
			return pl.Name + " has rows only for items that meet its `match`"
		}
	}
	for _, attr := range pl.Row.Attrs {
		if !s.present(attr) {
			return pl.Name + " has rows only for items with " + attr
		}
	}
	return ""
}

// present reports whether every item of the read has an attribute: it is part of the table's key,
// or of the index's.
func (s *span) present(attr string) bool {
	if s.q.test(attr) != nil || constant(s.plan.Rule, attr) || s.tableKey(attr) {
		return true
	}
	for _, k := range s.q.Key {
		if k.Name == attr {
			return true
		}
	}
	return false
}

// requires reports whether only items with an attribute have a row of the plan.
func (s *span) requires(attr string) bool {
	needs := func(c ir.Condition) bool { return c.Attr == attr && (c.Exists == nil || *c.Exists) }
	if slices.Contains(s.plan.Row.Attrs, attr) || slices.ContainsFunc(s.plan.Rule.Conditions, needs) ||
		slices.ContainsFunc(s.plan.Conditions, needs) {
		return true
	}
	for _, when := range []*ir.Predicate{s.plan.When, s.plan.Rule.When} {
		if when == nil {
			continue
		}
		for part := range strings.SplitSeq(when.Source, "&&") {
			if m := hasAttr.FindStringSubmatch(strings.TrimSpace(part)); m != nil && m[1] == attr {
				return true
			}
		}
	}
	return false
}

// tableKey reports whether an attribute is part of the table's key.
func (s *span) tableKey(attr string) bool {
	return slices.Contains(s.q.tableKey, attr)
}

// hasAttr is a test that an item has an attribute, as CEL writes it.
var hasAttr = regexp.MustCompile(`^has\(item\.(\w+)\)$`)

// exists reports whether a `when` holds of every item of the read, because it tests only that
// attributes exist which all of them have.
func (s *span) exists(when string) bool {
	for part := range strings.SplitSeq(when, "&&") {
		m := hasAttr.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil || !s.present(m[1]) {
			return false
		}
	}
	return true
}

// plansNamed returns the row of each rule under the name of an index, "" for the main row; nil if
// one of them has none.
func plansNamed(rules []*ir.Rule, index string) (out []*ir.Plan) {
	for _, r := range rules {
		i := slices.IndexFunc(r.Plans, func(pl *ir.Plan) bool { return indexName(pl) == index })
		if i < 0 {
			return nil
		}
		out = append(out, r.Plans[i])
	}
	return out
}

// indexName returns the name of the index that a plan is, "" for a main row.
func indexName(pl *ir.Plan) string {
	for i := range pl.Rule.Src.Index {
		if x := &pl.Rule.Src.Index[i]; &x.Row == pl.Src {
			return x.At.S
		}
	}
	return ""
}
