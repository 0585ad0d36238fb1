package ir

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Condition tests one attribute. An empty field tests nothing.
type Condition struct {
	Attr    string
	Key     bool // the attribute is part of the primary key
	Pattern *tmpl.Pattern
	Equals  *string
	In      []string
	Type    string
	Exists  *bool
}

// Holds reports whether an item meets the condition. What its pattern captures goes to captures.
func (c *Condition) Holds(img change.Image, captures []string) bool {
	v := img.Get(c.Attr)
	if c.Exists != nil && *c.Exists != (v != nil) {
		return false
	}
	if c.Type != "" && (v == nil || v.Kind.String() != c.Type) {
		return false
	}
	if c.Pattern == nil && c.Equals == nil && c.In == nil {
		return true
	}
	if v == nil || v.Kind == change.KindNull {
		return false
	}
	text, err := tmpl.Scalar(c.Attr, v)
	switch {
	case err != nil:
		return false
	case c.Equals != nil && text != *c.Equals:
		return false
	case c.In != nil && !slices.Contains(c.In, text):
		return false
	}
	return c.Pattern == nil || c.Pattern.Match(text, captures)
}

// Matches reports whether an item meets all conditions and the expression, if there is one.
// Captures go to captures. The error is a Refusal, when the expression cannot be evaluated.
func Matches(conditions []Condition, when *Predicate, img change.Image, captures []string) (bool, error) {
	for i := range conditions {
		if !conditions[i].Holds(img, captures) {
			return false, nil
		}
	}
	if when == nil {
		return true, nil
	}
	return when.Holds(img)
}

// RuleOf returns the rule that takes the item in scope, and leaves its captures in the scope; nil
// when none does.
func (p *Program) RuleOf(x *Eval) (*Rule, error) {
	for _, r := range p.Rules {
		x.Scope.Caps = x.Captures
		ok, err := Matches(r.Conditions, r.When, x.Scope.Image, x.Scope.Caps)
		if err != nil {
			return nil, err
		}
		if ok {
			return r, nil
		}
	}
	return nil, nil
}
