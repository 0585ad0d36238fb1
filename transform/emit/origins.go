package emit

import (
	"bytes"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// origin is a plan that may give an item a row, judging by the item's key.
type origin struct {
	p    *ir.Program
	rule *ir.Rule
	plan *ir.Plan
	x    *ir.Eval // has the key in scope, and the captures that come from it

	known bool // fixed and named are filled
	fixed []ir.Emitted
	named Owned
}

// originsOf returns the plans of all rules that may take an item with these keys.
func originsOf(p *ir.Program, keys change.Image) (all []*origin) {
	for _, r := range p.Rules {
		if !mayMatchKey(r.Conditions, keys, evalOf(p, keys)) {
			continue
		}
		for _, pl := range r.Plans {
			x := evalOf(p, keys)
			if mayMatchKey(r.Conditions, keys, x) && mayMatchKey(pl.Conditions, keys, x) {
				all = append(all, &origin{p: p, rule: r, plan: pl, x: x})
			}
		}
		if p.KeyDecidesRule {
			break
		}
	}
	return all
}

func evalOf(p *ir.Program, keys change.Image) *ir.Eval {
	x := p.NewEval()
	x.Scope.Image, x.Scope.Caps = keys, x.Captures
	return x
}

// givenBy returns the origins that may give a row.
func givenBy(all []*origin, row []byte) (may []*origin) {
	for _, o := range all {
		if mayGive(o.plan, o.x, row) {
			may = append(may, o)
		}
	}
	return may
}

// row returns the row's key where the item's key gives it; nil where it does not, or where the
// mapping refuses it.
func (o *origin) row() []byte {
	if !o.plan.Row.FromKey {
		return nil
	}
	row, err := o.plan.Row.Append(nil, &o.x.Scope)
	if err != nil || len(row) == 0 || len(row) > ir.MaxRowKey {
		return nil
	}
	return row
}

// columns fills the item's columns: fixed are those that its key decides, named those that show to
// which item they belong. A column that is refused was never written.
func (o *origin) columns() error {
	if o.known {
		return nil
	}
	o.known = true
	for _, e := range o.plan.Emitters {
		var err error
		switch {
		case e.FromKey:
			err = ignoreMissing(e.EmitPossible(o.x))
		case whyUnowned(e) == "":
			err = o.named.add(o.x, e, e)
		}
		if err := ignoreRefusal(err); err != nil {
			return err
		}
	}
	o.fixed = o.x.Cells
	return nil
}

// cell returns a held cell as the mapping's, with the entry that writes its column; ok is false for
// a cell that does not show that it is the item's.
func (o *origin) cell(h *HeldCell) (c ir.Emitted, ok bool) {
	c = ir.Emitted{Qualifier: h.Qualifier, Value: h.Value, Time: h.Time, Emptied: len(h.Value) == 0}
	for i := range o.fixed {
		f := &o.fixed[i]
		if f.Family.Name == h.Family && bytes.Equal(f.Qualifier, h.Qualifier) && !f.By.Time.Siblings {
			c.By, c.Family = f.By, f.Family
			return c, true
		}
	}
	if n := o.named.find(h.Family, h.Qualifier); n != nil {
		c.By, c.Family = n.by, n.family
		return c, true
	}
	if !o.plan.Exclusive {
		return c, false
	}
	for _, e := range o.plan.Emitters { // the item owns the row: the column is of some entry
		for _, s := range e.Columns() {
			mine := s.Family.Name == h.Family && e.MayEmit(s.Family, string(h.Qualifier)) && !e.Time.Siblings
			if mine && (c.By == nil || e.KeepsVersions(s.Family)) {
				c.By, c.Family = e, s.Family
			}
		}
	}
	if c.By == nil { // no entry writes it, and the row is the item's all the same: somebody else wrote the cell
		c.By, c.Family = strayOf(h.Family)
	}
	return c, true
}

// strayOf returns an entry and a family for a cell that no entry of the mapping writes, so that
// nothing keeps it.
func strayOf(family string) (*ir.Emitter, *ir.FamilyRule) {
	f := &ir.FamilyRule{Family: ir.Family{Name: family, MaxVersions: 1}}
	return &ir.Emitter{Family: f}, f
}

// stays reports whether a cell remains as it is in a column that the item has no longer.
func (o *origin) stays(c *ir.Emitted) bool {
	why, emptied := staysIn(o.rule, c.By, c.Family)
	return why != "" && (!emptied || c.Emptied)
}

// unproven returns the columns that do not show to which item they belong, in rows of which the
// item has a part.
func (o *origin) unproven() (names []string) {
	if o.plan.Exclusive {
		return nil
	}
	for _, e := range o.plan.Emitters {
		if e.FromKey || e.Aggregate() || whyUnowned(e) == "" {
			continue
		}
		for _, c := range e.Columns() {
			names = append(names, c.String())
		}
	}
	return names
}

// reads returns what a resync must read of a row, other than its guards. now are the cells that the
// item has there; left is set where the item is not in the row.
func reads(from []*origin, now []ir.Emitted, left bool) ([]FamilyRead, error) {
	var out families
	for _, o := range from {
		if err := o.columns(); err != nil {
			return nil, err
		}
		if o.plan.Exclusive {
			out.addWhole(o, left)
			continue
		}
		if !o.plan.ReadToResync {
			continue
		}
		for i := range o.fixed {
			out.addColumn(&o.fixed[i])
		}
		for i := range o.named.columns {
			out.addOwned(&o.named.columns[i])
		}
	}
	for i := range now {
		if !now[i].By.Time.Siblings && !exclusive(from) {
			out.addColumn(&now[i])
		}
	}
	return out.merged(), nil
}

// readsAll returns what must be read of a row to determine whether it has a visible cell of the
// item.
func readsAll(from []*origin) ([]FamilyRead, error) {
	var out families
	for _, o := range from {
		if err := o.columns(); err != nil {
			return nil, err
		}
		if o.plan.Exclusive {
			for _, e := range o.plan.Emitters {
				for _, c := range e.Columns() {
					out.of(c.Family.Name).Ranges = []ColumnRange{{}}
				}
			}
			continue
		}
		for i := range o.fixed {
			out.addColumn(&o.fixed[i])
		}
		for i := range o.named.columns {
			out.addOwned(&o.named.columns[i])
		}
	}
	return out.merged(), nil
}

// exclusive reports whether the row belongs to one item. All plans that can give a row agree about
// that.
func exclusive(from []*origin) bool {
	return slices.ContainsFunc(from, func(o *origin) bool { return o.plan.Exclusive })
}

// families collects what is to be read of a row.
type families []FamilyRead

func (fs *families) of(name string) *FamilyRead {
	for i := range *fs {
		if (*fs)[i].Family == name {
			return &(*fs)[i]
		}
	}
	*fs = append(*fs, FamilyRead{Family: name, Versions: 1})
	return &(*fs)[len(*fs)-1]
}

// addWhole adds the families of a row that belongs to the item, including families that its plan
// does not write: another writer may have written there. Of a row that the item leaves, only
// histories are read: the rest is wiped.
func (fs *families) addWhole(o *origin, left bool) {
	for _, f := range o.p.FamilyRules {
		if left && slices.Contains(o.plan.History, f.Name) || !left && o.plan.ReadToResync {
			fs.of(f.Name).Ranges = []ColumnRange{{}}
		}
	}
}

// addColumn adds a column, unless it is shared by items that only its times tell apart.
func (fs *families) addColumn(c *ir.Emitted) {
	if !c.By.Time.Siblings {
		f := fs.of(c.Family.Name)
		f.Ranges = append(f.Ranges, ColumnRange{c.Qualifier, append(slices.Clone(c.Qualifier), 0)})
	}
}

// addOwned adds the columns that a template can give for the item: those that begin with its fixed
// text.
func (fs *families) addOwned(c *ownedColumn) {
	f := fs.of(c.family.Name)
	from := []byte(c.before)
	if !c.variable {
		f.Ranges = append(f.Ranges, ColumnRange{from, append(slices.Clone(from), 0)})
		return
	}
	f.Ranges = append(f.Ranges, ColumnRange{from, afterPrefix(from)})
}

// afterPrefix returns the first text after all texts with a prefix; nil when there is none.
func afterPrefix(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			next := slices.Clone(prefix[:i+1])
			next[i]++
			return next
		}
	}
	return nil
}

// merged returns the families with their ranges in order and without overlaps.
func (fs families) merged() []FamilyRead {
	for i := range fs {
		f := &fs[i]
		slices.SortFunc(f.Ranges, func(a, b ColumnRange) int { return bytes.Compare(a.From, b.From) })
		var out []ColumnRange
		for _, r := range f.Ranges {
			if n := len(out) - 1; n >= 0 && (out[n].To == nil || bytes.Compare(r.From, out[n].To) <= 0) {
				if out[n].To != nil && (r.To == nil || bytes.Compare(r.To, out[n].To) > 0) {
					out[n].To = r.To
				}
				continue
			}
			out = append(out, r)
		}
		if f.Ranges = out; len(out) == 1 && len(out[0].From) == 0 && out[0].To == nil {
			f.Ranges = nil
		}
	}
	return fs
}
