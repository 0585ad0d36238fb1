package prove

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Proof 1: proveRowDeterminesKey shows that the row's key determines the whole primary key, so that
// the row can belong to one item alone. Otherwise the row is shared, and pl.Why records the reason.
func proveRowDeterminesKey(s site) {
	pl := s.plan
	missing := s.missingKeyParts(pl.Row)
	switch {
	case pl.DeclaredOwner() == "cells":
		pl.Why = "the rule says `owns: cells`"
	case len(missing) > 0:
		pl.Why = "several items share the row: its key does not determine " + strings.Join(missing, ", ")
	case pl.WipesOnRemoval:
		pl.Why = "on_remove: row"
	case slices.ContainsFunc(pl.Emitters, (*ir.Emitter).Aggregate):
		pl.Why = "an aggregate family holds what several items merged"
	default:
		pl.Exclusive = true
	}
}

// Proof 4: proveRowsOrCellsDiffer shows that two plans of one target never write the same cell. If
// they can produce the same row, neither plan is exclusive any more, and cells that both may write
// are refused.
func proveRowsOrCellsDiffer(a, b site) {
	if !tmpl.Overlap(a.plan.Row.Shape, b.plan.Row.Shape) || sameRowIsSameItem(a, b) {
		return
	}
	for _, s := range []struct{ mine, other site }{{a, b}, {b, a}} {
		if s.mine.plan.Exclusive {
			s.mine.plan.Exclusive = false
			s.mine.plan.Why = s.other.nameFor(s.mine) + " can produce the same row"
		}
	}
	for _, ea := range a.plan.Emitters {
		for _, eb := range b.plan.Emitters {
			ca, cb, common := ir.CommonColumn(ea, eb)
			if common && !acknowledgedSharing(a, b, ea, eb) && !quiet(a, b) {
				b.draft.Problems.Errorf(cb.At, "shared_cell", sharedCellHint(a, b),
					"%s (%s) and %s (%s) may write the same cell of family %s", b.plan.Name, cb, a.nameFor(b), ca, ca.Family.Name)
			}
		}
	}
}

// acknowledgedSharing reports whether two emitters are allowed to write one cell: the server merges
// the cell, or the author acknowledges the sharing. It marks emitters of rules under
// `may_share_cells_with` as shared.
func acknowledgedSharing(a, b site, ea, eb *ir.Emitter) bool {
	if ea.Aggregate() && eb.Aggregate() {
		return true
	}
	if a.draft == b.draft && (ir.SharesWith(a.plan.Rule, b.plan.Rule) || ir.SharesWith(b.plan.Rule, a.plan.Rule)) {
		ea.Shared, eb.Shared = true, true
		return true
	}
	return ea.Time.Siblings && eb.Time.Siblings && ea.Shared && eb.Shared
}

// sharedCellHint returns the hint how to prevent two plans from writing one cell.
func sharedCellHint(a, b site) string {
	if a.draft != b.draft {
		return "give the tables' rows distinct literal prefixes (row: \"orders#{…}\"), or targets of their own"
	}
	hint := fmt.Sprintf("rows %q and %q can be the same: begin each with a word of its own, or keep the delimiter out "+
		"of a part "+
		"({x:seg}, or segments: escape); or give the columns different first words or families",
		a.plan.Row.Source, b.plan.Row.Source)
	if a.plan.Row.Source == b.plan.Row.Source {
		hint = "give one of them another family or a literal prefix in its column"
	}
	if a.plan.Rule != b.plan.Rule {
		hint += "; if it cannot happen in your data, say so: may_share_cells_with: [" + a.plan.Rule.Name + "]"
	}
	return hint
}

// sameRowIsSameItem reports whether equal rows of two rules always come from one and the same item,
// which passes from one rule to the other: both rows determine the whole key by the same
// references, and each reference stands for the same text in both rules.
func sameRowIsSameItem(a, b site) bool {
	if a.draft != b.draft || a.plan.Rule == b.plan.Rule || a.plan.Row.Ambiguity != "" || b.plan.Row.Ambiguity != "" {
		return false
	}
	known := tmpl.Common(a.plan.Row, b.plan.Row)
	for _, attr := range a.draft.KeyNames() {
		if !sameMeaning(a, b, attr, known) {
			return false
		}
	}
	return len(a.missingGiven(known)) == 0 && len(b.missingGiven(known)) == 0
}

// Proof 5: proveOneGuard gives rows that can be the same one kind of guard: if the row of one plan
// is shared, the rows of all plans that can produce it become shared too. The guard that an item
// wrote by one rule is then also the guard that is checked when the item passes to the other rule.
func proveOneGuard(sites []site) {
	for changed := true; changed; {
		changed = false
		for _, a := range sites {
			for _, b := range sites {
				overlap := a.plan.Exclusive && !b.plan.Exclusive && sameRowIsSameItem(a, b) &&
					tmpl.Overlap(a.plan.Row.Shape, b.plan.Row.Shape)
				if overlap {
					a.plan.Exclusive, changed = false, true
					a.plan.Why = b.nameFor(a) + " can produce the same row, and is not alone there: " + b.plan.Why
				}
			}
		}
	}
}
