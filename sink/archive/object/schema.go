package object

import (
	"fmt"
	"reflect"

	"github.com/parquet-go/parquet-go"
)

// The columns that every object has, by their place. Columns below configured are read back, in the
// order of the schema.
const (
	columnID = iota
	columnDeletedAt
	columnSource
	columnStream
	columnShard
	columnSequence
	columnVersion
	columnKeys
	columnItem
	columnExpires
	columnsRead
)

const misfits = "_misfits"

// Encodings and pages are from the first version of Parquet, which every reader supports. zstd
// makes up for what newer encodings would save.
func text() parquet.Node { return parquet.Encoded(parquet.String(), &parquet.Plain) }
func word() parquet.Node { return parquet.Encoded(parquet.String(), &parquet.RLEDictionary) } // few values
func number() parquet.Node {
	return parquet.Encoded(parquet.Int(64), &parquet.Plain)
}
func moment() parquet.Node {
	return parquet.Encoded(parquet.TimestampAdjusted(parquet.Millisecond, true), &parquet.Plain)
}

// fixed returns the columns before the configured ones.
func fixed() []field {
	return []field{
		columnID:        {text(), "id"},
		columnDeletedAt: {moment(), "deleted_at"},
		columnSource:    {word(), "source"},
		columnStream:    {word(), "stream"},
		columnShard:     {word(), "shard"},
		columnSequence:  {text(), "sequence"},
		columnVersion:   {number(), "version"},
		columnKeys:      {text(), "keys"},
		columnItem:      {parquet.Optional(text()), "item"},
		columnExpires:   {parquet.Optional(number()), "expires"},
	}
}

// AllColumns returns name and type of every column of a Parquet object, in order.
func AllColumns(configured []Column) (all []Column) {
	types := map[string]Type{
		"deleted_at": TimestampMilli, "version": Int64, "expires": Int64,
	}
	for _, f := range fixed() {
		t, ok := types[f.name]
		if !ok {
			t = String
		}
		all = append(all, Column{Name: f.name, Type: t})
	}
	all = append(all, sorted(configured)...)
	return append(all, Column{Name: misfits, Type: String})
}

// schemaOf returns the schema with the configured columns, which must be sorted.
func schemaOf(columns []Column) *parquet.Schema {
	fields := fixed()
	for _, c := range columns {
		fields = append(fields, field{parquet.Optional(nodeOf(c.Type)), c.Name})
	}
	fields = append(fields, field{parquet.Optional(text()), misfits})
	g := record{Group: parquet.Group{}}
	for i := range fields {
		g.Group[fields[i].name] = fields[i].Node
		g.fields = append(g.fields, &fields[i])
	}
	return parquet.NewSchema("tailrace", &g)
}

func nodeOf(t Type) parquet.Node {
	switch t {
	case Int64:
		return number()
	case Double:
		return parquet.Encoded(parquet.Leaf(parquet.DoubleType), &parquet.Plain)
	case Bool:
		return parquet.Encoded(parquet.Leaf(parquet.BooleanType), &parquet.Plain)
	case TimestampSecond, TimestampMilli:
		return moment()
	case String, JSON:
		return text()
	}
	precision, scale, _ := t.Decimal()
	width := parquet.FixedLenByteArrayType(decimalWidth(precision))
	return parquet.Encoded(parquet.Decimal(scale, precision, width), &parquet.Plain)
}

// checkSchema returns an error if a column that is read back is absent or has another type: the
// footer is damaged.
func checkSchema(s *parquet.Schema) error {
	have := s.Fields()
	if len(have) <= columnsRead {
		return fmt.Errorf("%d columns", len(have))
	}
	for i, want := range fixed() {
		h := have[i]
		if h.Name() != want.name || !h.Leaf() || h.Optional() != want.Optional() || h.Repeated() ||
			h.Type().Kind() != want.Type().Kind() {
			return fmt.Errorf("column %d is %q, want %q", i, h.Name(), want.name)
		}
	}
	return nil
}

// record is a group with fields in a given order; parquet.Group sorts its fields by name.
type record struct {
	parquet.Group
	fields []parquet.Field
}

func (r *record) Fields() []parquet.Field { return r.fields }

type field struct {
	parquet.Node
	name string
}

func (f *field) Name() string { return f.name }

// Value belongs to rows made from Go structs, which are not used here.
func (f *field) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(f.name))
}
