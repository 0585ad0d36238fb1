package lint

import (
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// linter checks the draft of one table, and adds problems to it.
type linter struct{ *ir.Draft }

// Conditions checks the conditions of all rules, and marks rules as unreachable if an earlier one
// takes all their items. It runs before the proofs, which report nothing about unreachable rules.
func Conditions(d *ir.Draft) {
	c := &linter{d}
	for i, r := range d.Program.Rules {
		c.lintReach(i, r)
		c.lintMatch(r)
	}
}

// Program checks the finished program, adds the mapping's access patterns and views to it, and
// drops the warnings that the mapping acknowledges.
func Program(d *ir.Draft) {
	c := &linter{d}
	c.lint()
	c.acknowledge()
}

// lint runs all checks of the finished program.
func (c *linter) lint() {
	for _, f := range c.Program.FamilyRules {
		if f.Expires && f.MaxAge != time.Second {
			c.Problems.Errorf(f.At, "expires_by_timestamp", "write `max_age: 1s`",
				"family %s expires by timestamp, so its cells must be collectable as soon as their time has passed", f.Name)
		}
		if len(f.Name) > 8 {
			c.Problems.Warnf(f.At, "family_name", "up to 8 characters: it travels with every request; if readers know it by "+
				"this name: acknowledged: [family_name]", "family name %q is long", f.Name)
		}
	}
	for _, r := range c.Program.Rules {
		c.lintRule(r)
		c.lintNames(r)
		c.lintSilent(r)
		for j, pl := range r.Plans {
			c.lintRow(pl, j == 0)
			c.lintPersonal(pl)
			c.lintTwice(pl)
		}
	}
	c.lintReads()
	c.lintViews()
}

// lintRule checks a rule's settings of removals, expiry and sharing.
func (c *linter) lintRule(r *ir.Rule) {
	for _, s := range r.Src.ShareWith {
		if !slices.ContainsFunc(c.Program.Rules, func(o *ir.Rule) bool { return o.Name == s.S }) {
			c.Problems.Errorf(s, "may_share_cells_with", "the name of another rule of this file", "there is no rule %q", s.S)
		}
	}
	if !r.Drop && r.Src.Row.Set() && len(r.Src.Cells) == 0 {
		c.Problems.Warnf(r.Src.At, "cells", "add `cells`", "the rule writes no cells: only the item's presence is kept")
	}
	if r.OnRemove == "row" {
		c.Problems.Warnf(r.Src.OnRemove, "cascade", "on_remove: own removes the item's cells only, the row vanishes with "+
			"its last cell; if children are removed with the item: acknowledged: [cascade]",
			"removing one of these items deletes the whole row; a child that changes later brings a part of it back")
	}
	c.lintHistories(r)
	if c.Program.LosesTrackOf(r) {
		at := r.Src.OnTTLExpiry
		if !at.Set() { // on_ttl_expiry is set for the whole table
			at = r.Src.At
		}
		c.Problems.Warnf(at, "ttl", "on_ttl_expiry: delete; or a rule and rows that the key alone decides",
			"an expired item that is put again leaves its old cells behind: its key does not determine which they were")
	}
	if r.ArchiveFamily != nil && slices.ContainsFunc(c.KeyNames(), func(k string) bool { return c.Personal[k] }) {
		c.Problems.Errorf(r.Src.OnTTLExpiry, "pii", "on_ttl_expiry: archive",
			"the archive's column is named by the item's key, which holds personal data")
	}
	for _, pl := range r.Plans {
		for _, e := range pl.Emitters {
			c.lintDocument(r, e)
		}
	}
}

// lintDocument refuses a document if its `except` leaves out an attribute that nothing else writes.
func (c *linter) lintDocument(r *ir.Rule, e *ir.Emitter) {
	if _, ok := e.Source.(*ir.Document); !ok || !e.Source.Attributes().All() {
		return
	}
	for _, x := range e.Entry.Except {
		if c.Program.KeyType(x.S) != 0 || r.Ignores(x.S) || r.Mentions(x.S) {
			continue
		}
		c.Problems.Errorf(x, "lost", "write it elsewhere, or leave it out on purpose with ignore: ["+x.S+"]",
			"the document leaves out %q, and nothing else writes it", x.S)
	}
}
