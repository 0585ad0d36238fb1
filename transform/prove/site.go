package prove

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// site is a row plan with its draft, to which problems of the plan are added.
type site struct {
	draft *ir.Draft
	plan  *ir.Plan
}

// quiet reports whether a problem about two sites would only follow from one that is reported
// already.
func quiet(a, b site) bool {
	return a.draft.Broken || b.draft.Broken || a.plan.Rule.Unreachable || b.plan.Rule.Unreachable
}

// nameFor returns the plan's name for a message that also names the plan of other: with the table
// if theirs differ.
func (s site) nameFor(other site) string {
	if s.draft != other.draft {
		return fmt.Sprintf("%s of table %s", s.plan.Name, s.draft.Program.Table.Source)
	}
	return s.plan.Name
}

// missingKeyParts returns references to the parts of the primary key that the texts of the
// templates do not determine.
func (s site) missingKeyParts(templates ...*tmpl.Template) []string {
	known := map[string]bool{}
	for _, t := range templates {
		if t != nil && t.Ambiguity == "" {
			maps.Copy(known, t.Covers)
		}
	}
	return s.missingGiven(known)
}

// missingGiven returns references to the parts of the primary key that are not among the captures
// and attributes in known.
func (s site) missingGiven(known map[string]bool) (missing []string) {
	for _, attr := range s.draft.KeyNames() {
		missing = append(missing, s.missingOf(attr, known)...)
	}
	return missing
}

// missingOf returns references to the parts of one key attribute that are not among the captures
// and attributes in known.
func (s site) missingOf(attr string, known map[string]bool) (missing []string) {
	r := s.plan.Rule
	if known[attr] && !isCapture(s.plan, attr) {
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

// isCapture reports whether a capture of the plan has the name of an attribute: references to that
// name then stand for the capture, not for the attribute.
func isCapture(pl *ir.Plan, name string) bool {
	return slices.ContainsFunc(pl.Captures, func(c tmpl.Capture) bool { return c.Name == name })
}

// sameMeaning reports whether references to a key attribute, or to its captures, stand for the same
// text in two plans. They do if both plans refer to the attribute itself, or if both rules match it
// with the same pattern. known holds the captures and attributes that both rows determine by the
// same references.
func sameMeaning(a, b site, attr string, known map[string]bool) bool {
	byName := known[attr] && !isCapture(a.plan, attr) && !isCapture(b.plan, attr)
	return byName || samePattern(a.plan.Rule, b.plan.Rule, attr)
}

// samePattern reports whether two rules match an attribute with the same pattern: its captures then
// hold the same parts.
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
