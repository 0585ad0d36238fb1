package prove

import (
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// Proof 2: proveFamiliesAgree shows that all tables of one target declare a family alike.
func proveFamiliesAgree(drafts []*ir.Draft) {
	type declared struct {
		by     *ir.Draft
		family *ir.FamilyRule
	}
	first := map[string]declared{}
	for _, d := range drafts {
		target := d.Program.Table.Target
		for _, f := range d.Program.FamilyRules {
			o, dup := first[target+":"+f.Name]
			switch {
			case !dup:
				first[target+":"+f.Name] = declared{d, f}
			case o.family.Family != f.Family:
				d.Problems.Errorf(f.At, "family", "declare it the same way, or give one of them another name",
					"family %s of target %s is declared differently by table %s", f.Name, target, o.by.Program.Table.Source)
			}
		}
	}
}

// Proof 3: proveArchiveAlone shows that nothing else writes a family of archived items. Removals
// spare such a family, so other cells in it would never be removed.
func proveArchiveAlone(sites []site) {
	for _, s := range sites {
		family := s.plan.Rule.ArchiveFamily
		if family == nil || s.plan != s.plan.Rule.Plans[0] {
			continue
		}
		at := s.plan.Rule.Src.OnTTLExpiry
		for _, other := range sites {
			otherFamily := other.plan.Rule.ArchiveFamily
			if other.draft != s.draft && otherFamily != nil && otherFamily.Name == family.Name {
				s.draft.Problems.Errorf(at, "shared_cell", "give each table's archive a family of its own",
					"table %s archives into family %s of this target too", other.draft.Program.Table.Source, family.Name)
			}
			for _, e := range other.plan.Emitters {
				if slices.ContainsFunc(e.Columns(), func(c ir.ColumnSet) bool { return c.Family.Name == family.Name }) {
					s.draft.Problems.Errorf(at, "shared_cell", "declare a family for archived items alone",
						"%s writes family %s too, and what is archived there is never removed", other.nameFor(s), family.Name)
				}
			}
		}
	}
}
