package transform

import (
	"slices"

	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// checkColumns refuses emitters of which an item's own cells would hide each other, or would be in families that hold
// something else.
func (c *compiler) checkColumns(e *emitter) {
	alone := e.kind == "attr" || e.kind == "attrs" && len(e.names) == 1
	if alone && e.flatten && !e.qualifier.Vars[tmpl.VarPath] {
		c.ps.Errorf(e.src.To, "to", "write \""+e.family.Name+":{path}\"", "`flatten` gives a cell for every leaf of the map, but the column is always %q", e.src.To.S)
	}
	for _, o := range e.outs()[1:] {
		c.plainFamily(o.family, o.src)
	}
	if e.siblings && e.family.MaxVersions == 1 {
		c.ps.Errorf(e.src.To, "gc", "max_versions: a number of cells to keep, or all", "`cell_id: ts` puts cells of several items into one column, but family %s keeps one of them", e.family.Name)
	}
	for _, name := range e.names {
		if e.except[name] {
			c.ps.Errorf(e.src.At, "option", "leave it out of the list", "`except` leaves out %q, which `attrs` names", name)
		}
	}
	c.checkRename(e)
}

// checkRename refuses a new name that another attribute has.
func (c *compiler) checkRename(e *emitter) {
	given := map[string]string{}
	for _, p := range e.src.Rename {
		if other, dup := given[p.Value.S]; dup {
			c.ps.Errorf(p.Value, "collision", "give each attribute a name of its own", "%q and %q are both renamed to %q", other, p.Name, p.Value.S)
		}
		given[p.Value.S] = p.Name
		_, moved := e.rename[p.Value.S]
		if slices.Contains(e.names, p.Value.S) && !moved {
			c.ps.Errorf(p.Value, "collision", "give each attribute a name of its own", "%q is renamed to %q, which is written too", p.Name, p.Value.S)
		}
	}
}

// plainFamily refuses a family that cannot hold cells beside its own kind.
func (c *compiler) plainFamily(f *family, at lang.Text) {
	switch {
	case f.Aggregate != "":
		c.ps.Errorf(at, "aggregate", "name a family of plain cells", "family %s is an aggregate: it holds merged numbers only", f.Name)
	case f.expires:
		c.ps.Errorf(at, "expires_by_timestamp", "name another family", "family %s expires by timestamp: what has no expiry would vanish at once", f.Name)
	}
}

// archives refuses a family of archived items that anything else writes: removals spare it, so that what it holds
// besides would never be removed.
func archives(sites []site) {
	for _, s := range sites {
		r := s.pl.rule
		if r.archive == nil || s.pl != r.plans[0] {
			continue
		}
		at := r.src.OnTTLExpiry
		for _, other := range sites {
			if other.c != s.c && other.pl.rule.archive != nil && other.pl.rule.archive.Name == r.archive.Name {
				s.c.ps.Errorf(at, "shared_cell", "give each table's archive a family of its own", "table %s archives into family %s of this target too", other.c.p.table.Source, r.archive.Name)
			}
			for _, e := range other.pl.emitters {
				if slices.ContainsFunc(e.outs(), func(o out) bool { return o.family.Name == r.archive.Name }) {
					s.c.ps.Errorf(at, "shared_cell", "declare a family for archived items alone", "%s writes family %s too, and what is archived there is never removed", other.naming(s), r.archive.Name)
				}
			}
		}
	}
}
