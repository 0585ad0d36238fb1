package request

import (
	"sort"

	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// ReadUnits is what a strongly or eventually consistent read of so many bytes costs.
func ReadUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// WriteUnits is what a write costs of an item that had and gets these sizes.
func WriteUnits(before, after int) float64 {
	return float64(max(1, (max(before, after)+1023)/1024))
}

// Bill adds up a request's capacity by table. Transact names a kind of unit that
// transactions show beside the sum: "Read" or "Write".
type Bill struct {
	Transact string
	units    map[string]float64
}

// Add puts units on a table's account.
func (b *Bill) Add(table string, units float64) {
	if b.units == nil {
		b.units = map[string]float64{}
	}
	b.units[table] += units
}

// AppendOne appends the ConsumedCapacity of a call on one table, if it was asked for.
func (b *Bill) AppendOne(out []byte, r *wire.Node) []byte {
	mode := r.Str("ReturnConsumedCapacity")
	if mode != "TOTAL" && mode != "INDEXES" {
		return out
	}
	for table, units := range b.units {
		out = b.appendTable(wire.AppendField(out, "ConsumedCapacity"), table, units, mode)
	}
	return out
}

// AppendAll is AppendOne for calls on several tables.
func (b *Bill) AppendAll(out []byte, r *wire.Node) []byte {
	mode := r.Str("ReturnConsumedCapacity")
	if mode != "TOTAL" && mode != "INDEXES" {
		return out
	}
	tables := make([]string, 0, len(b.units))
	for t := range b.units {
		tables = append(tables, t)
	}
	sort.Strings(tables)
	out = append(wire.AppendField(out, "ConsumedCapacity"), '[')
	for i, t := range tables {
		if i > 0 {
			out = append(out, ',')
		}
		out = b.appendTable(out, t, b.units[t], mode)
	}
	return append(out, ']')
}

func (b *Bill) appendTable(out []byte, table string, units float64, mode string) []byte {
	out = wire.AppendText(append(out, '{'), "TableName", table)
	out = wire.AppendFloat(out, "CapacityUnits", units)
	if b.Transact != "" {
		out = wire.AppendFloat(out, b.Transact+"CapacityUnits", units)
	}
	if mode == "INDEXES" {
		out = wire.AppendFloat(append(wire.AppendField(out, "Table"), '{'), "CapacityUnits", units)
		if b.Transact != "" {
			out = wire.AppendFloat(out, b.Transact+"CapacityUnits", units)
		}
		out = append(out, '}')
	}
	return append(out, '}')
}
