package export

import (
	"encoding/json"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Filter is the FilterSpecification of an export: which items and attributes it has.
//
// Documented are the syntax of the three expressions, that an incremental export filters by the
// newest image of an item and by the old one of an item that was deleted, and that DescribeExport
// returns the specification. Not documented, and assumed here: the projection concerns both images,
// Keys are always whole, and nothing in the manifests marks an export as filtered.
//
// Sources:
//   - https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Filtered.html
//   - https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_FilterSpecification.html
type Filter struct {
	Spec  json.RawMessage // as it was requested, without nulls
	exprs request.Parsed
}

// ReadFilter reads the FilterSpecification of a request; nil without one.
func ReadFilter(n *wire.Node) (*Filter, *wire.Error) {
	if n == nil {
		return nil, nil
	}
	spec := appendNode(nil, n)
	own, err := wire.Parse(string(spec)) // the nodes of a request alias its body
	if err != nil {
		return nil, wire.Invalid("Invalid FilterSpecification: %s", err.Error())
	}
	exprs, bad := request.Parse(own)
	if bad != nil {
		return nil, bad
	}
	return &Filter{Spec: spec, exprs: exprs}, nil
}

// Same reports whether two requests ask for the same filter.
func (f *Filter) Same(g *Filter) bool {
	if f == nil || g == nil {
		return f == g
	}
	return string(f.Spec) == string(g.Spec)
}

// record returns what a full export with the filter has of an item, and whether it has it. A nil
// filter takes all.
func (f *Filter) record(r *table.Record) (*table.Record, bool) {
	if f == nil {
		return r, true
	}
	return f.project(r), f.takes(r.Item())
}

// change returns what an incremental export with the filter has of an item's net change, and
// whether it has it.
func (f *Filter) change(c table.Change) (table.Change, bool) {
	r := c.New
	if r == nil {
		r = c.Old
	}
	if f == nil || r == nil || !f.takes(r.Item()) {
		return c, f == nil || r == nil
	}
	c.Old, c.New = f.project(c.Old), f.project(c.New)
	return c, true
}

// takes reports whether the filter takes an item.
func (f *Filter) takes(item attr.Map) bool {
	for name, test := range f.exprs.Keys {
		if v := item.Get(name); v == nil || !test.Match(v) {
			return false
		}
	}
	return f.exprs.Filter == nil || f.exprs.Filter.Match(item)
}

// project returns a record with the attributes that the filter keeps; nil for nil.
func (f *Filter) project(r *table.Record) *table.Record {
	if f.exprs.Projection == nil || r == nil {
		return r
	}
	return table.NewRecord(r.Key, f.exprs.Projection.Of(r.Item()))
}

// appendNode appends a value of a request as JSON.
func appendNode(b []byte, n *wire.Node) []byte {
	switch n.Kind {
	case wire.Object:
		b = append(b, '{')
		for i := range n.Kids {
			if k := &n.Kids[i]; k.Kind != wire.Null {
				b = appendNode(wire.AppendField(b, k.Name), k)
			}
		}
		return append(b, '}')
	case wire.Array:
		b = append(b, '[')
		for i := range n.Kids {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendNode(b, &n.Kids[i])
		}
		return append(b, ']')
	case wire.String:
		text, _ := json.Marshal(n.Text) // a string always has a form
		return append(b, text...)
	}
	return append(b, n.Text...)
}
