package transform

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Resyncable says whether a row of class D can be put right without its old image, and if not, why: a resync
// reads the row and deletes what Owned gives to the item, which needs columns that tell their item.
func (p *Program) Resyncable() (bool, string) {
	for _, r := range p.rules {
		for _, pl := range r.plans {
			if pl.class != ClassD {
				continue
			}
			for _, e := range pl.emitters {
				if why := e.unowned(); why != "" {
					return false, fmt.Sprintf("%s, `%s`: %s", pl.name, e.Describe(), why)
				}
			}
		}
	}
	return true, ""
}

// unowned says why a column does not tell its item, "" when it does.
func (e *Emitter) unowned() string {
	switch {
	case e.Aggregate():
		return ""
	case e.Shared:
		return "other items may write the column, acknowledged"
	case e.Time.Siblings || e.Timed:
		return "its cells carry the mapping's own times"
	case e.Qualifier.Vars[tmpl.VarType]:
		return "the column names the value's type"
	case slices.ContainsFunc(e.Columns(), func(o ColumnSet) bool { return len(o.Column.Attrs) > 0 && !o.Column.FromKey }):
		return "the column is named by attributes of the item"
	}
	if h, ok := e.Qualifier.Hole(); !ok && slices.Contains(e.Qualifier.Vars[:], true) || len(h.Filters) > 0 {
		return "the column does not show what it is named by as it is"
	}
	return ""
}

// Owned is the inverse of the mapping's columns for one item.
type Owned struct {
	columns []ownedColumn
}

type ownedColumn struct {
	x             *Eval
	e             *Emitter
	family        string
	before, after string
	variable      bool
}

// Owned prepares to tell which columns of its rows belong to an item, whatever the item holds now or held
// before. It is exact where the program is Resyncable.
func (p *Program) Owned(keys change.Image) (*Owned, error) {
	out := &Owned{}
	for _, r := range p.rules {
		x := p.NewEval()
		x.Scope.Image = keys
		x.Scope.Caps = x.Captures
		if !r.mayMatch(keys, x.Scope.Caps) {
			continue
		}
		for _, pl := range r.plans {
			for _, e := range pl.emitters {
				if e.unowned() != "" {
					continue
				}
				if err := out.add(x, e); err != nil {
					return nil, err
				}
			}
		}
		if p.byKey {
			break
		}
	}
	return out, nil
}

// mayMatch tests the conditions on key attributes alone.
func (r *rule) mayMatch(keys change.Image, caps []string) bool {
	for i := range r.conds {
		if r.conds[i].key && !r.conds[i].holds(keys, caps) {
			return false
		}
	}
	return true
}

func (o *Owned) add(x *Eval, e *Emitter) error {
	if other := e.Otherwise(); other != nil {
		if err := o.add(x, other); err != nil {
			return err
		}
	}
	families := []*family{e.Family}
	if e.Fallback != nil {
		families = append(families, e.Fallback)
	}
	c := ownedColumn{x: x, e: e}
	h, variable := e.Qualifier.Hole()
	var err error
	if variable {
		c.variable = true
		c.before, c.after, err = e.Qualifier.Around(h, &x.Scope)
	} else {
		var q []byte
		q, err = e.ColumnName(x)
		c.before = string(q)
	}
	if err != nil {
		return err
	}
	for _, f := range families {
		c.family = f.Name
		o.columns = append(o.columns, c)
	}
	return nil
}

// Has says whether a column belongs to the item.
func (o *Owned) Has(family string, qualifier []byte) bool {
	return slices.ContainsFunc(o.columns, func(c ownedColumn) bool { return c.family == family && c.has(string(qualifier)) })
}

// has cuts out what stands where the variable was, and tests that the template gives the column again: a
// part that the template would refuse or escape belongs to another item.
func (c *ownedColumn) has(q string) bool {
	if !c.variable {
		return q == c.before
	}
	part, ok := between(q, c.before, c.after)
	if !ok {
		return false
	}
	for v := range c.x.Scope.Vars {
		c.x.Scope.Vars[v] = tmpl.Unescape(part)
	}
	again, err := c.e.ColumnName(c.x)
	if err != nil || string(again) != q {
		for v := range c.x.Scope.Vars {
			c.x.Scope.Vars[v] = part
		}
		again, err = c.e.ColumnName(c.x)
	}
	return err == nil && string(again) == q
}
