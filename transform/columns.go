package transform

import (
	"slices"
	"strings"

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
	for _, o := range e.outs() {
		if !o.main {
			c.plainFamily(o.family, o.src)
		}
	}
	if e.siblings && e.family.MaxVersions == 1 {
		c.ps.Errorf(e.src.To, "gc", "max_versions: a number of cells to keep, or all", "`cell_id: ts` puts cells of several items into one column, but family %s keeps one of them", e.family.Name)
	}
	if e.siblings && e.family.removed == "empty" {
		c.ps.Errorf(e.src.CellID, "cell_id", "removed: delete or keep", "family %s ends removed cells in an empty version, but with `cell_id: ts` the older versions are other items", e.family.Name)
	}
	for _, name := range e.names {
		if e.except[name] {
			c.ps.Errorf(e.src.At, "option", "leave it out of the list", "`except` leaves out %q, which `attrs` names", name)
		}
	}
	c.checkRename(e)
}

// spell gives the columns of attributes that the author named: {attr} is then no text of any kind. Names that a
// template might write otherwise than they are stay a variable.
func (e *emitter) spell(qualifier string, env *tmpl.Env) []*tmpl.Template {
	names := e.names
	if e.kind == "attr" {
		names = []string{e.attr}
	}
	before, after, found := strings.Cut(qualifier, "{attr}")
	plain := func(s string) bool {
		return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
	}
	if !found || e.flatten || strings.Contains(after, "{attr}") || after != "" && (plain(after[:1]) || after[0] == '{') {
		return nil
	}
	var out []*tmpl.Template
	for _, name := range names {
		if to, ok := e.rename[name]; ok {
			name = to
		}
		t, err := tmpl.New(before+name+after, env)
		if err != nil || !plain(name) || strings.Contains(name, env.Delim) {
			return nil
		}
		out = append(out, t)
	}
	return out
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

// histories refuses tombstones where cells are items of their own, and warns of histories that nobody keeps.
func (c *compiler) histories(r *rule) {
	kept := false
	for _, pl := range r.plans {
		for _, e := range pl.emitters {
			kept = kept || slices.ContainsFunc(e.outs(), func(o out) bool { return e.historic(o.family) })
			if e.siblings && r.onRemove == "tombstone" {
				c.ps.Errorf(e.src.CellID, "cell_id", "on_remove: own", "`on_remove: tombstone` ends columns in an empty version, but with `cell_id: ts` the older versions are other items")
			}
			f := e.family
			if e.ts != nil && !e.siblings && f.MaxVersions > 1 && !c.siblingsIn(f) {
				c.ps.Warnf(e.src.TS, "history", "leave out `ts`; or `cell_id: ts` with `collisions: acknowledged` and `removed: keep` in the family, if the times of one item's changes differ; or max_versions: 1",
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
			return slices.ContainsFunc(pl.emitters, func(e *emitter) bool { return e.family == f && (e.siblings || e.historic(f)) })
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
				if slices.ContainsFunc(e.outs(), func(o out) bool { return o.family.Name == r.archive.Name }) {
					s.c.ps.Errorf(at, "shared_cell", "declare a family for archived items alone", "%s writes family %s too, and what is archived there is never removed", other.naming(s), r.archive.Name)
				}
			}
		}
	}
}
