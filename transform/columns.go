package transform

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// checkColumns refuses emitters of which an item's own cells would hide each other, or would be in families that hold
// something else.
func (c *compiler) checkColumns(e *Emitter) {
	if len(e.Source.Listed()) == 1 && e.Values.Flatten != nil && !e.Qualifier.Vars[tmpl.VarPath] {
		c.ps.Errorf(e.Entry.To, "to", "write \""+e.Family.Name+":{path}\"", "`flatten` gives a cell for every leaf of the map, but the column is always %q", e.Entry.To.S)
	}
	for _, o := range e.Columns() {
		if !o.Main {
			c.plainFamily(o.Family, o.At)
		}
	}
	if e.Time.Siblings && e.Family.MaxVersions == 1 {
		c.ps.Errorf(e.Entry.To, "gc", "max_versions: a number of cells to keep, or all", "`cell_id: ts` puts cells of several items into one column, but family %s keeps one of them", e.Family.Name)
	}
	if e.Time.Siblings && e.Family.removed == "empty" {
		c.ps.Errorf(e.Entry.CellID, "cell_id", "removed: delete or keep", "family %s ends removed cells in an empty version, but with `cell_id: ts` the older versions are other items", e.Family.Name)
	}
	attrs := e.Source.Attributes()
	for _, name := range attrs.Names {
		if attrs.Except[name] {
			c.ps.Errorf(e.Entry.At, "option", "leave it out of the list", "`except` leaves out %q, which `attrs` names", name)
		}
	}
	c.checkRename(e)
}

// perName gives the columns of attributes that the author named: {attr} is then no text of any kind. Names that a
// template might write otherwise than they are stay a variable.
func (e *Emitter) perName(qualifier string, env *tmpl.Env) []*tmpl.Template {
	before, after, found := strings.Cut(qualifier, "{attr}")
	plain := func(s string) bool {
		return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
	}
	if !found || e.Values.Flatten != nil || strings.Contains(after, "{attr}") || after != "" && (plain(after[:1]) || after[0] == '{') {
		return nil
	}
	var out []*tmpl.Template
	for _, name := range e.Source.Listed() {
		name = e.Source.Attributes().Written(name)
		t, err := tmpl.New(before+name+after, env)
		if err != nil || !plain(name) || strings.Contains(name, env.Delim) {
			return nil
		}
		out = append(out, t)
	}
	return out
}

// checkRename refuses a new name that another attribute has.
func (c *compiler) checkRename(e *Emitter) {
	attrs := e.Source.Attributes()
	given := map[string]string{}
	for _, p := range e.Entry.Rename {
		if other, dup := given[p.Value.S]; dup {
			c.ps.Errorf(p.Value, "collision", "give each attribute a name of its own", "%q and %q are both renamed to %q", other, p.Name, p.Value.S)
		}
		given[p.Value.S] = p.Name
		_, moved := attrs.Rename[p.Value.S]
		if slices.Contains(attrs.Names, p.Value.S) && !moved {
			c.ps.Errorf(p.Value, "collision", "give each attribute a name of its own", "%q is renamed to %q, which is written too", p.Name, p.Value.S)
		}
	}
}

// histories refuses tombstones where cells are items of their own, and warns of histories that nobody keeps.
func (c *compiler) histories(r *rule) {
	kept := false
	for _, pl := range r.plans {
		for _, e := range pl.emitters {
			kept = kept || slices.ContainsFunc(e.Columns(), func(o ColumnSet) bool { return e.KeepsVersions(o.Family) })
			if e.Time.Siblings && r.onRemove == "tombstone" {
				c.ps.Errorf(e.Entry.CellID, "cell_id", "on_remove: own", "`on_remove: tombstone` ends columns in an empty version, but with `cell_id: ts` the older versions are other items")
			}
			f := e.Family
			if e.Time.Template != nil && !e.Time.Siblings && f.MaxVersions > 1 && !c.siblingsIn(f) {
				c.ps.Warnf(e.Entry.TS, "history", "leave out `ts`; or `cell_id: ts` with `collisions: acknowledged` and `removed: keep` in the family, if the times of one item's changes differ; or max_versions: 1",
					"family %s keeps %d versions, but an update replaces a cell with a time of its own: there will be one", f.Name, f.MaxVersions)
			}
		}
	}
	if r.onRemove == "tombstone" && !kept && len(r.plans) > 0 {
		c.ps.Warnf(r.src.OnRemove, "history", "max_versions: 2 or more in a family of the rule, or leave it out", "`on_remove: tombstone` ends histories, but the rule keeps none")
	}
}

// siblingsIn says whether somebody keeps cells of several times in a family.
func (c *compiler) siblingsIn(f *family) bool {
	return slices.ContainsFunc(c.p.rules, func(r *rule) bool {
		return slices.ContainsFunc(r.plans, func(pl *plan) bool {
			return slices.ContainsFunc(pl.emitters, func(e *Emitter) bool { return e.Family == f && (e.Time.Siblings || e.KeepsVersions(f)) })
		})
	})
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
				if slices.ContainsFunc(e.Columns(), func(o ColumnSet) bool { return o.Family.Name == r.archive.Name }) {
					s.c.ps.Errorf(at, "shared_cell", "declare a family for archived items alone", "%s writes family %s too, and what is archived there is never removed", other.naming(s), r.archive.Name)
				}
			}
		}
	}
}
