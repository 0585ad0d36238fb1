package ir

import (
	"errors"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

func (r *Rule) Ignores(name string) bool {
	return slices.ContainsFunc(r.Src.Ignore, func(t lang.Text) bool { return t.S == name || t.S == "*" })
}

// Mentions says whether a rule uses an attribute outside of documents and wildcards.
func (r *Rule) Mentions(name string) bool {
	if slices.ContainsFunc(r.Conditions, func(c Condition) bool { return c.Attr == name && (c.Equals != nil || c.Pattern != nil) }) {
		return true
	}
	for _, pl := range r.Plans {
		if slices.Contains(pl.Row.Attrs, name) {
			return true
		}
		for _, e := range pl.Emitters {
			if slices.Contains(e.Source.Attributes().Names, name) || slices.Contains(e.Qualifier.Attrs, name) || (e.Time.Template != nil && slices.Contains(e.Time.Template.Attrs, name)) {
				return true
			}
		}
	}
	return false
}

// DecidedByKey says whether the key alone tells if an item meets the rule.
func (r *Rule) DecidedByKey() bool {
	return r.When == nil && !slices.ContainsFunc(r.Conditions, func(c Condition) bool { return !c.Key })
}

func SharesWith(r, with *Rule) bool {
	return slices.ContainsFunc(r.Src.ShareWith, func(t lang.Text) bool { return t.S == with.Name })
}

// Rule is a compiled rule: the first one whose conditions an item meets says what becomes of it.
type Rule struct {
	Name          string
	Src           *lang.Rule
	Conditions    []Condition
	When          *Predicate
	Captures      []tmpl.Capture
	OwnCaptures   int // how many these are; those of an index stand behind them
	Drop          bool
	Plans         []*Plan // the main row, then index rows
	OnRemove      string
	OnTTL         string
	ArchiveFamily *FamilyRule // archive:<family>
	NeedOld       bool        // old images are needed to know what to delete
	Heals         bool
	Unreachable   bool              // an earlier rule takes all its items
	Wanted        func(string) bool // attributes to decode; nil = all
	WantedNames   map[string]bool
	WantsAll      bool
}

// Plan is one row that a rule writes.
type Plan struct {
	Name           string
	Rule           *Rule
	Src            *lang.Text
	Captures       []tmpl.Capture // the rule's and, of an index, its own
	Conditions     []Condition
	When           *Predicate
	Row            *tmpl.Template
	Class          Class
	Exclusive      bool
	Why            string   // why it has this class
	History        []string // families with versions to keep
	SparedFamilies []string // what a wipe of the row spares: history, and the archive
	Emitters       []*Emitter
	CompareCells   bool // two emitters may give one cell: compare at run time
	WipesOnRemoval bool // on_remove: row
	Wipeable       bool // a cascade may delete the row: its own, or another rule's
}

// Condition tests one attribute.
type Condition struct {
	Attr    string
	Key     bool
	Pattern *tmpl.Pattern
	Equals  *string
	In      []string
	Type    string
	Exists  *bool
}

func (c *Condition) Holds(img change.Image, caps []string) bool {
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
	return c.Pattern == nil || c.Pattern.Match(text, caps)
}

// Matches tests an item against conditions; captures go to caps.
func Matches(conds []Condition, when *Predicate, img change.Image, caps []string) (bool, error) {
	for i := range conds {
		if !conds[i].Holds(img, caps) {
			return false, nil
		}
	}
	if when == nil {
		return true, nil
	}
	return when.Holds(img)
}

// RuleOf returns the rule of an item and leaves its captures in the scope; nil when none matches.
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

// WrapRefusal turns what a template or an encoding says into a Refusal with its place.
func WrapRefusal(code string, err error, format string, args ...any) error {
	if r := (*tmpl.Refusal)(nil); errors.As(err, &r) {
		code = r.Code
		return tmpl.Refuse(code, format+": %s", append(args, r.What)...)
	}
	return tmpl.Refuse(code, format+": %s", append(args, err.Error())...)
}

func GlobalAttribute(name string) bool { return strings.HasPrefix(name, "aws:rep:") }
