package request

import (
	"sort"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/capacity"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// ReadUnits returns the capacity units of a strongly or eventually consistent read of that many
// bytes.
func ReadUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// ErrThroughput is the error of a read beyond a table's capacity.
var ErrThroughput = &wire.Error{Code: "ProvisionedThroughputExceededException",
	Message: "The level of configured provisioned throughput for the table was exceeded. " +
		"Consider increasing your provisioning level with the UpdateTable API."}

// ReadOf returns a read of a table that begins at a key, for the table's limits. The caller holds
// the table's lock.
func ReadOf(t *table.Table, at table.Key) capacity.Read {
	r := capacity.Read{Table: t.Name, Hash: at.Hash()}
	if !t.Def.OnDemand {
		r.Provisioned = t.Def.Read
	}
	return r
}

// WriteUnits returns the capacity units of a write that changes an item's size from before to
// after.
func WriteUnits(before, after int) float64 {
	return float64(max(1, (max(before, after)+1023)/1024))
}

// Bill is the consumed capacity of a request, by table. Transact is "Read" or "Write" for
// transactions; their replies show the units under that name too.
type Bill struct {
	Transact string
	units    map[string]float64
}

// Add adds units to a table's sum.
func (b *Bill) Add(table string, units float64) {
	if b.units == nil {
		b.units = map[string]float64{}
	}
	b.units[table] += units
}

// Empty reports whether nothing was added.
func (b *Bill) Empty() bool { return len(b.units) == 0 }

// AppendOne appends the ConsumedCapacity of a call on one table, if the request has the parameter
// for it.
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

// AppendAll appends the ConsumedCapacity of a call on several tables, if the request has the
// parameter for it.
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

// appendTable appends the capacity of one table.
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
