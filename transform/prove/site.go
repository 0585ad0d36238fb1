package prove

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// site is a row plan with the draft that it belongs to, which takes the problems.
type site struct {
	draft *ir.Draft
	plan  *ir.Plan
}

// quiet reports whether a problem about two sites would only follow from one that is reported already.
func quiet(a, b site) bool {
	return a.draft.Broken || b.draft.Broken || a.plan.Rule.Unreachable || b.plan.Rule.Unreachable
}

// nameFor names the plan in a message that is about another table's plan or about one of the same table.
func (s site) nameFor(reader site) string {
	if s.draft != reader.draft {
		return fmt.Sprintf("%s of table %s", s.plan.Name, s.draft.Program.Table.Source)
	}
	return s.plan.Name
}

// missingKeyParts names the parts of the primary key that the texts of the templates do not determine, as references.
func (s site) missingKeyParts(templates ...*tmpl.Template) []string {
	known := map[string]bool{}
	for _, t := range templates {
		if t != nil && t.Ambiguity == "" {
			maps.Copy(known, t.Covers)
		}
	}
	return s.missingBeside(known)
}

// missingBeside names the parts of the primary key that are not among the captures and attributes in known.
func (s site) missingBeside(known map[string]bool) (missing []string) {
	for _, attr := range s.draft.KeyNames() {
		missing = append(missing, s.missingOf(attr, known)...)
	}
	return missing
}

// missingOf names the parts of one key attribute that are not among the captures and attributes in known.
func (s site) missingOf(attr string, known map[string]bool) (missing []string) {
	r := s.plan.Rule
	if known[attr] && !captures(s.plan, attr) {
		return nil
	}
	fixed := false
	for i := range r.Conditions {
		c := &r.Conditions[i]
		fixed = fixed || c.Attr == attr && (c.Equals != nil || c.Pattern != nil)
	}
	if !fixed {
		missing = append(missing, "{"+attr+"}")
	}
	for _, capture := range r.Captures[:r.OwnCaptures] {
		if capture.Attr == attr && !known[capture.Name] {
			missing = append(missing, "{"+capture.Name+"}")
		}
	}
	return missing
}

// captures reports whether an attribute's name is also the name of a capture of the plan: references to that name then
// mean the capture.
func captures(pl *ir.Plan, name string) bool {
	return slices.ContainsFunc(pl.Captures, func(c tmpl.Capture) bool { return c.Name == name })
}

// sameMeaning reports whether two plans mean the same by an attribute, or by its captures, where known has those that
// both rows determine by the same references.
func sameMeaning(a, b site, attr string, known map[string]bool) bool {
	named := known[attr] && !captures(a.plan, attr) && !captures(b.plan, attr)
	return named || samePattern(a.plan.Rule, b.plan.Rule, attr)
}

// samePattern reports whether two rules match an attribute with the same pattern, so that its captures, or its whole
// text, are the same.
func samePattern(a, b *ir.Rule, attr string) bool {
	pattern := func(r *ir.Rule) string {
		for i := range r.Src.Match {
			if r.Src.Match[i].At.S == attr {
				return r.Src.Match[i].Pattern.S
			}
		}
		return ""
	}
	return pattern(a) != "" && pattern(a) == pattern(b)
}
