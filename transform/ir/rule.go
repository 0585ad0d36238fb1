package ir

import (
	"slices"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Rule is a compiled rule. An item is mapped by the first rule with conditions that it meets.
type Rule struct {
	Name          string
	Src           *lang.Rule // as its author wrote it
	Conditions    []Condition
	When          *Predicate // nil: none
	Captures      []tmpl.Capture
	OwnCaptures   int     // how many of Captures are the rule's; those of an index follow them
	Drop          bool    // its items are not written
	Plans         []*Plan // the main row, then index rows
	OnRemove      string
	OnTTL         string
	ArchiveFamily *FamilyRule // on_ttl_expiry: archive:<family>
	NeedOld       bool        // old images are needed to find what to delete
	Heals         bool        // rows and columns depend on the key alone: the next change repairs what a dead letter left
	Unreachable   bool        // an earlier rule takes all its items

	WantedNames map[string]bool   // attributes to decode, where WantsAll is not set
	WantsAll    bool              // all attributes must be decoded
	Wanted      func(string) bool // WantedNames and WantsAll as a function; nil = all
}

// Plan is one row that a rule writes.
type Plan struct {
	Name           string // in messages: rule x, index y of rule x
	Rule           *Rule
	Src            *problem.Text  // the row's template as its author wrote it
	Captures       []tmpl.Capture // the rule's and, in an index, its own
	Conditions     []Condition    // in an index: which items are in it
	When           *Predicate
	Row            *tmpl.Template
	Class          Class
	Exclusive      bool     // the row belongs to one item: it is deleted as a whole before it is written
	Why            string   // the reason for the class
	History        []string // families with versions to keep
	SparedFamilies []string // what a wipe of the row spares: history, and the archive
	Emitters       []*Emitter
	CompareCells   bool // two emitters may write one cell: every item is compared
	WipesOnRemoval bool // on_remove: row
	Wipeable       bool // a removal of another item may delete the row
	ByKey          bool // the key alone decides that an item has the row, and gives the row's key
	ReadToResync   bool // what a resync writes depends on what the row holds
}

// DeclaredOwner returns `owns` of the row in the mapping: cells, row, or "" where it is not set.
func (pl *Plan) DeclaredOwner() string {
	if pl == pl.Rule.Plans[0] {
		return pl.Rule.Src.Owns.S
	}
	for i := range pl.Rule.Src.Index {
		if x := &pl.Rule.Src.Index[i]; &x.Row == pl.Src {
			return x.Owns.S
		}
	}
	return ""
}

// DecidedByKey reports whether the key alone decides if an item meets the rule.
func (r *Rule) DecidedByKey() bool {
	return r.When == nil && !slices.ContainsFunc(r.Conditions, func(c Condition) bool { return !c.Key })
}

// Ignores reports whether `ignore` lists an attribute, which is thus left out on purpose.
func (r *Rule) Ignores(attr string) bool {
	return slices.ContainsFunc(r.Src.Ignore, func(t problem.Text) bool { return t.S == attr || t.S == "*" })
}

// Mentions reports whether the rule uses an attribute outside of documents and wildcards.
func (r *Rule) Mentions(attr string) bool {
	tests := func(c Condition) bool { return c.Attr == attr && (c.Equals != nil || c.Pattern != nil) }
	return slices.ContainsFunc(r.Conditions, tests) ||
		slices.ContainsFunc(r.Plans, func(pl *Plan) bool { return pl.mentions(attr) })
}

// mentions reports whether the row key, a column, a cell time or a list of attributes names the
// attribute.
func (pl *Plan) mentions(attr string) bool {
	return slices.Contains(pl.Row.Attrs, attr) || slices.ContainsFunc(pl.Emitters, func(e *Emitter) bool {
		t := e.Time.Template
		return slices.Contains(e.Source.Attributes().Names, attr) || slices.Contains(e.Qualifier.Attrs, attr) ||
			t != nil && slices.Contains(t.Attrs, attr)
	})
}

// SharesWith reports whether the author of one rule acknowledges that another one may write its
// cells.
func SharesWith(r, with *Rule) bool {
	return slices.ContainsFunc(r.Src.ShareWith, func(t problem.Text) bool { return t.S == with.Name })
}
