package steps

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Lead is the first value of an item in a row key, after any literal text.
type Lead struct {
	Row     string // the rule or index, as in a RowReport
	Of      string // the capture or attribute
	Value   string // before its filters
	Filters []string
	Known   bool // the author has acknowledged the warning `hotspot` for the row
}

// Leads returns the leads of an item's row keys. A row key that begins with a salt has none.
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
			out = append(out, Lead{Row: pl.Name, Of: name, Value: value, Filters: filters, Known: acknowledgesHotspot(p, pl)})
		}
	}
	return out
}

// acknowledgesHotspot reports whether the author has acknowledged that new rows of a plan may all
// go to one place.
func acknowledgesHotspot(p *ir.Program, pl *ir.Plan) bool {
	m := p.Table.Mapping
	return m != nil && slices.ContainsFunc(m.Acknowledged, func(t problem.Text) bool {
		return lang.Acknowledges(t, problem.Problem{Severity: problem.SeverityWarning, Code: "hotspot", Path: pl.Src.Path})
	})
}

// Untyped reports whether some rule writes an attribute without recording its type, so that values
// of two types can give equal cells.
func Untyped(p *ir.Program, attr string) bool {
	return slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool {
		if len(r.Plans) == 0 {
			return false
		}
		written := slices.DeleteFunc(slices.Clone(r.Plans[0].Emitters),
			func(e *ir.Emitter) bool { return !e.IsSidecar() && !e.Holds(attr) })
		return slices.ContainsFunc(written, func(e *ir.Emitter) bool { return !e.IsSidecar() }) &&
			!slices.ContainsFunc(written, recordsType)
	})
}

// recordsType reports whether the type of a value follows from the emitter's cells: its encoding
// keeps the type or is for one type only, or it is a sidecar, which writes the types of other
// emitters' attributes.
func recordsType(e *ir.Emitter) bool {
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
