package explain

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Lead is what a row key begins with behind its literal text: a value of the item.
type Lead struct {
	Row     string // the rule or index, as in a RowReport
	Of      string // the capture or attribute
	Value   string // before its filters
	Filters []string
	Known   bool // the author has acknowledged that such rows may go to one place
}

// Leads returns what the row keys of an item begin with behind their literal text. A row that begins with a salt has no
// lead.
func Leads(p *ir.Program, img change.Image) (out []Lead) {
	x := p.NewEval()
	x.Scope.Image = img
	r, err := p.RuleOf(x)
	if err != nil || r == nil {
		return nil
	}
	for i, pl := range r.Plans {
		if i > 0 {
			if ok, err := ir.Matches(pl.Conditions, pl.When, img, x.Captures); !ok || err != nil {
				continue
			}
		}
		if name, value, filters, ok := pl.Row.Lead(&x.Scope); ok {
			out = append(out, Lead{Row: pl.Name, Of: name, Value: value, Filters: filters, Known: acknowledged(p, pl)})
		}
	}
	return out
}

// acknowledged reports whether the author knows that new rows of a plan may go to one place.
func acknowledged(p *ir.Program, pl *ir.Plan) bool {
	m := p.Table.Mapping
	return m != nil && slices.ContainsFunc(m.Acknowledged, func(t problem.Text) bool {
		return lang.Acknowledges(t, problem.Problem{Severity: problem.SeverityWarning, Code: "hotspot", Path: pl.Src.Path})
	})
}

// Untyped reports whether some rule writes an attribute so that values of two types can look alike.
func Untyped(p *ir.Program, attr string) bool {
	return slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool {
		if len(r.Plans) == 0 {
			return false
		}
		written := slices.DeleteFunc(slices.Clone(r.Plans[0].Emitters),
			func(e *ir.Emitter) bool { return !e.IsSidecar() && !e.Holds(attr) })
		return slices.ContainsFunc(written, func(e *ir.Emitter) bool { return !e.IsSidecar() }) &&
			!slices.ContainsFunc(written, tellsType)
	})
}

// tellsType reports whether the type of a value can be read from its cell, or there is only one.
func tellsType(e *ir.Emitter) bool {
	switch s := e.Source.(type) {
	case *ir.Document:
		return s.Format != "json"
	case *ir.Attr, *ir.Attrs:
		return slices.Contains([]string{"dynamo_json", "protobuf", "int64", "float64", "decimal", "bool1"}, e.Entry.As.S)
	}
	return true // a sidecar, or a collection of one type
}

// Int64Only reports whether some rule refuses items in which an attribute is not a 64-bit integer.
func Int64Only(p *ir.Program, attr string) bool {
	return slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool {
		return slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool {
			return slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool {
				return e.Holds(attr) && e.Entry.As.S == "int64" && e.Fallback == nil && e.Family.Aggregate != "hll"
			})
		})
	})
}

// SharesCells reports whether the mapping acknowledges that two items may write one cell.
func SharesCells(p *ir.Program) bool {
	return slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool {
		return len(r.Src.ShareWith) > 0 || r.Src.Collisions.Set() || slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool {
			return slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool { return e.Shared })
		})
	})
}
