package prove

import (
	"slices"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// All gives every row plan its class, and refuses mappings in which two items could write one cell.
// Problems go to the drafts; of two tables, the later draft gets the problem.
func All(drafts []*ir.Draft) {
	byTarget := map[string][]site{}
	var targets []string
	for _, d := range drafts {
		t := d.Program.Table.Target
		if _, seen := byTarget[t]; !seen {
			targets = append(targets, t)
		}
		for _, r := range d.Program.Rules {
			for _, pl := range r.Plans {
				s := site{d, pl}
				proveRowDeterminesKey(s)
				byTarget[t] = append(byTarget[t], s)
			}
		}
	}
	proveFamiliesAgree(drafts)
	for _, t := range targets {
		sites := byTarget[t]
		proveArchiveAlone(sites)
		for i := range sites {
			for j := range i {
				proveRowsOrCellsDiffer(sites[j], sites[i])
			}
		}
		proveOneGuard(sites)
		proveRemovalOrder(sites)
		for _, s := range sites {
			classify(s)
		}
	}
}

// classify gives a plan its class, and checks that items which share its row cannot share cells.
func classify(s site) {
	d, pl := s.draft, s.plan
	spareFamilies(pl)
	if pl.Exclusive {
		pl.Class, pl.Why = ir.ClassR, "the row's key determines the whole primary key and nothing else writes it"
		pl.CompareCells = proveCellsOfItemDiffer(s)
		return
	}
	if pl.DeclaredOwner() == "row" && !d.Broken {
		d.Problems.Errorf(*pl.Src, "owns", "remove `owns: row`, or make the row's key determine the primary key",
			"`owns: row` cannot be proved: %s", pl.Why)
	}
	pl.Class = ir.ClassK
	for _, e := range pl.Emitters {
		if !e.FromKey && !e.Aggregate() {
			pl.Class = ir.ClassD
			pl.Why += "; the columns of `" + e.Describe() + "` depend on the item"
			break
		}
	}
	if pl.Class == ir.ClassK {
		pl.Why += "; all its columns are known from the key"
	}
	pl.CompareCells = proveCellsOfItemDiffer(s)
	if d.Broken || pl.Rule.Unreachable {
		return
	}
	for i, e := range pl.Emitters {
		proveCellDeterminesItem(s, e)
		proveColumnHasOneItem(s, pl.Emitters[:i], e)
	}
}

// spareFamilies records in a plan the families with versions to keep, and the families that a wipe
// of the row spares.
func spareFamilies(pl *ir.Plan) {
	for _, e := range pl.Emitters {
		for _, c := range e.Columns() {
			f := c.Family
			if !slices.Contains(pl.History, f.Name) && (e.KeepsVersions(f) || e.Time.Siblings) && f.History {
				pl.History = append(pl.History, f.Name)
			}
		}
	}
	pl.SparedFamilies = slices.Clip(pl.History)
	if r := pl.Rule; r.ArchiveFamily != nil && pl == r.Plans[0] {
		pl.SparedFamilies = append(pl.SparedFamilies, r.ArchiveFamily.Name)
	}
}
