package emit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Resyncable reports whether rows of class D (by-diff) can be repaired without an old image, and if
// not, why: a resync reads the row and deletes the item's columns, so every column must show to
// which item it belongs.
func Resyncable(p *ir.Program) (bool, string) {
	for _, r := range p.Rules {
		for _, pl := range r.Plans {
			if pl.Class != ir.ClassD {
				continue
			}
			for _, e := range pl.Emitters {
				if why := whyUnowned(e); why != "" {
					return false, fmt.Sprintf("%s, `%s`: %s", pl.Name, e.Describe(), why)
				}
			}
		}
	}
	return true, ""
}

// whyUnowned returns why an emitter's column does not determine its item, "" when it does.
func whyUnowned(e *ir.Emitter) string {
	switch {
	case e.Aggregate():
		return ""
	case e.Shared:
		return "other items may write the column, acknowledged"
	case e.Time.Siblings || e.Timed:
		return "its cells carry the mapping's own times"
	case e.Qualifier.Vars[tmpl.VarType]:
		return "the column names the value's type"
	case slices.ContainsFunc(e.Columns(), func(o ir.ColumnSet) bool {
		return len(o.Column.Attrs) > 0 &&
			!o.Column.FromKey
	}):
		return "the column is named by attributes of the item"
	}
	if h, ok := e.Qualifier.VarPlace(); !ok && slices.Contains(e.Qualifier.Vars[:], true) || len(h.Filters) > 0 {
		return "the column does not show what it is named by as it is"
	}
	return ""
}

// Owned is the set of columns of a row that belong to one item. It is not safe for concurrent use.
type Owned struct {
	columns []ownedColumn
	unsure  []string // families with columns that do not show to which item they belong
	rules   []string
	names   []string // of the rules
}

// ownedColumn is a column of the item, or all columns that a template gives for it.
type ownedColumn struct {
	x             *ir.Eval
	e             *ir.Emitter // whose template names the column
	by            *ir.Emitter // the entry of the mapping; e differs from it for values that it cannot expand
	family        *ir.FamilyRule
	before, after string // the texts around the variable; before is the whole column when there is none
	variable      bool
}

// OwnedBy returns which columns of a row belong to an item, whatever it holds now or held before.
// It is exact where the program is Resyncable. Columns of other rows do not count: no change writes
// them here, and no resync deletes them.
func OwnedBy(p *ir.Program, keys change.Image, row []byte) (*Owned, error) {
	out := &Owned{}
	for _, r := range p.Rules {
		x := p.NewEval()
		x.Scope.Image = keys
		x.Scope.Caps = x.Captures
		if !mayMatchKey(r.Conditions, keys, x) {
			continue
		}
		for _, pl := range r.Plans {
			if !mayGive(pl, x, row) {
				continue
			}
			out.rules, out.names = append(out.rules, pl.Name), append(out.names, pl.Rule.Name)
			for _, e := range pl.Emitters {
				if whyUnowned(e) != "" {
					out.addUnsure(e)
					continue
				}
				if err := out.add(x, e, e); err != nil {
					return nil, err
				}
			}
		}
		if p.KeyDecidesRule {
			break
		}
	}
	return out, nil
}

// mayGive reports whether a plan may give a row to the item with the key in x's scope.
func mayGive(pl *ir.Plan, x *ir.Eval, row []byte) bool {
	shape, err := pl.Row.ShapeGiven(&x.Scope)
	return err == nil && tmpl.Overlap(shape, tmpl.Text(string(row)))
}

// addUnsure adds the families of an emitter with columns that do not show to which item they
// belong.
func (o *Owned) addUnsure(e *ir.Emitter) {
	for _, c := range e.Columns() {
		o.unsure = append(o.unsure, c.Family.Name)
	}
}

// MayHave reports whether columns of a family that Has denies may belong to the item all the same,
// because a column of the mapping there does not show to which item it belongs.
func (o *Owned) MayHave(family string) bool { return slices.Contains(o.unsure, family) }

// mayMatchKey reports whether an item with these keys may meet conditions, and fills the captures
// that come from keys.
func mayMatchKey(conditions []ir.Condition, keys change.Image, x *ir.Eval) bool {
	for i := range conditions {
		if conditions[i].Key && !conditions[i].Holds(keys, x.Scope.Caps) {
			return false
		}
	}
	return true
}

// add adds the columns of an emitter, including those in its fallback family and those for values
// that it cannot expand.
func (o *Owned) add(x *ir.Eval, e, by *ir.Emitter) error {
	if other := e.Otherwise(); other != nil {
		if err := o.add(x, other, by); err != nil {
			return err
		}
	}
	families := []*ir.FamilyRule{e.Family}
	if e.Fallback != nil {
		families = append(families, e.Fallback)
	}
	c := ownedColumn{x: x, e: e, by: by}
	h, variable := e.Qualifier.VarPlace()
	var err error
	if variable {
		c.variable = true
		c.before, c.after, err = e.Qualifier.TextsAround(h, &x.Scope)
	} else {
		var q []byte
		q, err = e.ColumnName(x)
		c.before = string(q)
	}
	if err != nil {
		return err
	}
	for _, f := range families {
		c.family = f
		o.columns = append(o.columns, c)
	}
	return nil
}

// Has reports whether a column belongs to the item.
func (o *Owned) Has(family string, qualifier []byte) bool { return o.find(family, qualifier) != nil }

// Rules returns the rules and indexes that may give the row to the item, as RowReport names them.
// Its key may leave several open.
func (o *Owned) Rules() []string { return o.rules }

// RuleNames returns the rules of the same, as their mapping names them.
func (o *Owned) RuleNames() []string { return o.names }

// Entry is the entry of a mapping that writes a column. The zero value is an entry that is not
// known.
type Entry struct {
	Text string // for people, as in "attrs: all → d:{attr}"
	To   string // the template of the columns, as in "d:{attr}"
	// ByAttributes is true when names of attributes alone make the column's name, so that it shows
	// no data.
	ByAttributes bool
}

// Entry returns the entry of the mapping that writes a column of the item; the zero value where
// that is not known.
func (o *Owned) Entry(family string, qualifier []byte) Entry {
	c := o.find(family, qualifier)
	if c == nil {
		return Entry{}
	}
	return entryOf(c.by.Describe(), c.by.Entry.To.S)
}

// entryOf returns the entry that a description of its source and its target make. The target is a
// template of the mapping language; one with other variables than {attr}, or with filters, may show
// data.
func entryOf(source, to string) Entry {
	others := strings.ReplaceAll(to, "{attr}", "")
	return Entry{Text: source + " → " + to, To: to, ByAttributes: !strings.ContainsAny(others, "{}")}
}

// find returns the item's columns that a column is one of; nil when it is none of them.
func (o *Owned) find(family string, qualifier []byte) *ownedColumn {
	for i := range o.columns {
		if c := &o.columns[i]; c.family.Name == family && c.has(string(qualifier)) {
			return c
		}
	}
	return nil
}

// has takes the variable's text from the column's name and tests that the template gives the same
// name again, for the text unescaped or as it is. A name that the template cannot give belongs to
// another item.
func (c *ownedColumn) has(q string) bool {
	if !c.variable {
		return q == c.before
	}
	part, ok := cutBetween(q, c.before, c.after)
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
