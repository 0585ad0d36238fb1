package transform

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// What a sample of items can tell about a mapping, and its compiler cannot.

// Lead is what a row key begins with behind its literal text: a value of the item.
type Lead struct {
	Row     string // the rule or index, as in a RowReport
	Of      string // the capture or attribute
	Value   string // before its filters
	Filters []string
	Known   bool // the author has acknowledged that such rows may go to one place
}

// Leads are the leads of the rows that an item has. A row that begins with a salt has none.
func (p *Program) Leads(img change.Image) (out []Lead) {
	x := p.NewEval()
	x.Scope.Image = img
	r, err := p.pick(x)
	if err != nil || r == nil {
		return nil
	}
	for i, pl := range r.plans {
		if i > 0 {
			if ok, err := matches(pl.conds, pl.when, img, x.Captures); !ok || err != nil {
				continue
			}
		}
		if name, value, filters, ok := pl.row.Lead(&x.Scope); ok {
			out = append(out, Lead{Row: pl.name, Of: name, Value: value, Filters: filters, Known: p.acknowledged(pl)})
		}
	}
	return out
}

func (p *Program) acknowledged(pl *plan) bool {
	m := p.table.Mapping
	return m != nil && slices.ContainsFunc(m.Acknowledged, func(t lang.Text) bool {
		return lang.Acknowledges(t, Problem{Severity: lang.SeverityWarning, Code: "hotspot", Path: pl.src.Path})
	})
}

// Untyped says whether some rule writes an attribute so that values of two types can look alike.
func (p *Program) Untyped(attr string) bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool {
		if len(r.plans) == 0 {
			return false
		}
		written := slices.DeleteFunc(slices.Clone(r.plans[0].emitters), func(e *Emitter) bool { return !e.isSidecar() && !e.Holds(attr) })
		return slices.ContainsFunc(written, func(e *Emitter) bool { return !e.isSidecar() }) && !slices.ContainsFunc(written, (*Emitter).tellsType)
	})
}

// tellsType says whether the type of what an emitter writes can be told, be it because there is only one.
func (e *Emitter) tellsType() bool {
	switch s := e.Source.(type) {
	case *Document:
		return s.Format != "json"
	case *Attr, *Attrs:
		return slices.Contains([]string{"dynamo_json", "protobuf", "int64", "float64", "decimal", "bool1"}, e.Entry.As.S)
	}
	return true // a sidecar, or a collection of one type
}

// Int64Only says whether some rule refuses items in which an attribute is no 64-bit integer.
func (p *Program) Int64Only(attr string) bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool {
		return slices.ContainsFunc(r.plans, func(pl *plan) bool {
			return slices.ContainsFunc(pl.emitters, func(e *Emitter) bool {
				return e.Holds(attr) && e.Entry.As.S == "int64" && e.Fallback == nil && e.Family.Aggregate != "hll"
			})
		})
	})
}

// SharesCells says whether the mapping acknowledges that two items may write one cell.
func (p *Program) SharesCells() bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool {
		return len(r.src.ShareWith) > 0 || r.src.Collisions.Set() || slices.ContainsFunc(r.plans, func(pl *plan) bool {
			return slices.ContainsFunc(pl.emitters, func(e *Emitter) bool { return e.Shared })
		})
	})
}
