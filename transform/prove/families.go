package prove

import (
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// archiveFamiliesAlone refuses a family of archived items that anything else writes: removals spare it, so that what it holds
// besides would never be removed.
func archiveFamiliesAlone(sites []site) {
	for _, s := range sites {
		r := s.pl.Rule
		if r.ArchiveFamily == nil || s.pl != r.Plans[0] {
			continue
		}
		at := r.Src.OnTTLExpiry
		for _, other := range sites {
			if other.c != s.c && other.pl.Rule.ArchiveFamily != nil && other.pl.Rule.ArchiveFamily.Name == r.ArchiveFamily.Name {
				s.c.Problems.Errorf(at, "shared_cell", "give each table's archive a family of its own", "table %s archives into family %s of this target too", other.c.Program.Table.Source, r.ArchiveFamily.Name)
			}
			for _, e := range other.pl.Emitters {
				if slices.ContainsFunc(e.Columns(), func(o ir.ColumnSet) bool { return o.Family.Name == r.ArchiveFamily.Name }) {
					s.c.Problems.Errorf(at, "shared_cell", "declare a family for archived items alone", "%s writes family %s too, and what is archived there is never removed", other.naming(s), r.ArchiveFamily.Name)
				}
			}
		}
	}
}

// familiesAgree refuses families of one target table that two mappings declare differently.
func familiesAgree(cs []*ir.Draft) {
	type owner struct {
		c *ir.Draft
		f *ir.FamilyRule
	}
	seen := map[string]owner{}
	for _, c := range cs {
		for _, f := range c.Program.FamilyRules {
			k := c.Program.Table.Target + ":" + f.Name
			if o, dup := seen[k]; dup && o.f.Family != f.Family {
				c.Problems.Errorf(f.At, "family", "declare it the same way, or give one of them another name", "family %s of target %s is declared differently by table %s", f.Name, c.Program.Table.Target, o.c.Program.Table.Source)
			} else if !dup {
				seen[k] = owner{c, f}
			}
		}
	}
}
