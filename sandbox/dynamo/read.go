package dynamo

import (
	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/expr"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// appendItem appends a record's item, or the projected part of it.
func appendItem(out []byte, r *table.Record, p *expr.Projection) []byte {
	if p == nil {
		return append(out, r.JSON...)
	}
	return p.Of(r.Item()).AppendJSON(out)
}

// getItem answers GetItem.
func (s *Server) getItem(r *call) ([]byte, *wire.Error) {
	key, err := request.Item(r.Node, "Key")
	if err != nil {
		return nil, err
	}
	projection, err := request.Projection(r.Node)
	if err != nil {
		return nil, err
	}
	t, err := s.find(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	if err := t.Schema.CheckKey(key); err != nil {
		return nil, err
	}
	rec := get(t, t.Schema.KeyOf(key))
	size := 0
	out := []byte{'{'}
	if rec != nil {
		size = rec.Size
		out = appendItem(wire.AppendField(append(make([]byte, 0, len(rec.JSON)+64), '{'), "Item"), rec, projection)
	}
	var b request.Bill
	b.Add(t.Name, request.ReadUnits(size, r.True("ConsistentRead")))
	return append(b.AppendOne(out, r.Node), '}'), nil
}

// get returns the record under a key, nil if there is none.
func get(t *table.Table, key table.Key) *table.Record {
	t.RLock()
	defer t.RUnlock()
	return t.Items.Get(key)
}

// batchRead is the part of a BatchGetItem that concerns one table.
type batchRead struct {
	node       *wire.Node
	table      *table.Table
	keys       []attr.Map
	projection *expr.Projection
}

// The limits of one BatchGetItem. What maxBatchBytes cuts off is returned as UnprocessedKeys.
const (
	maxBatchRead  = 100 // keys
	maxBatchBytes = 16 << 20
)

// batchGet answers BatchGetItem.
func (s *Server) batchGet(r *call) ([]byte, *wire.Error) {
	reads, err := readBatchGet(r.Get("RequestItems"))
	if err != nil {
		return nil, err
	}
	for i := range reads {
		if err := reads[i].bind(s); err != nil {
			return nil, err
		}
	}
	out := append(wire.AppendField([]byte{'{'}, "Responses"), '{')
	var left []byte
	var b request.Bill
	size := 0
	for i := range reads {
		out, left, size = reads[i].run(out, left, size, &b)
	}
	out = append(out, '}')
	out = append(wire.AppendField(out, "UnprocessedKeys"), '{')
	out = append(append(out, left...), '}')
	return append(b.AppendAll(out, r.Node), '}'), nil
}

// readBatchGet reads the keys of each table and checks their number.
func readBatchGet(items *wire.Node) ([]batchRead, *wire.Error) {
	var reads []batchRead
	total := 0
	for i := range items.Kids {
		n := &items.Kids[i]
		b := batchRead{node: n}
		var err *wire.Error
		if b.projection, err = request.Projection(n); err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, k := range n.Get("Keys").Kids {
			key, err := attr.DecodeMap(&k)
			if err != nil {
				return nil, err
			}
			id := string(key.AppendJSON(nil))
			if seen[id] {
				return nil, wire.Invalid("Provided list of item keys contains duplicates")
			}
			seen[id] = true
			b.keys = append(b.keys, key)
		}
		if total += len(b.keys); total > maxBatchRead {
			return nil, wire.Invalid("Too many items requested for the BatchGetItem call")
		}
		reads = append(reads, b)
	}
	return reads, nil
}

// bind finds the table and checks the keys against its schema.
func (b *batchRead) bind(s *Server) (err *wire.Error) {
	if b.table, err = s.find(tableOf(b.node.Name)); err != nil {
		return err
	}
	for _, k := range b.keys {
		if err := b.table.Schema.CheckKey(k); err != nil {
			return err
		}
	}
	return nil
}

// run appends the items to out, and to left the keys that no longer fit. size is that of the items so far.
func (b *batchRead) run(out, left []byte, size int, total *request.Bill) ([]byte, []byte, int) {
	out = append(appendName(out, b.node.Name), '[')
	first := true
	var over []attr.Map
	for _, k := range b.keys {
		if size > maxBatchBytes {
			over = append(over, k)
			continue
		}
		rec := get(b.table, b.table.Schema.KeyOf(k))
		units := 0
		if rec != nil {
			units = rec.Size
			size += rec.Size
			if !first {
				out = append(out, ',')
			}
			first = false
			out = appendItem(out, rec, b.projection)
		}
		total.Add(b.table.Name, request.ReadUnits(units, b.node.True("ConsistentRead")))
	}
	return append(out, ']'), b.appendUnprocessed(left, over), size
}

// appendUnprocessed appends the keys that did not fit, in the form of the request.
func (b *batchRead) appendUnprocessed(left []byte, over []attr.Map) []byte {
	if len(over) == 0 {
		return left
	}
	left = append(wire.AppendField(append(appendName(left, b.node.Name), '{'), "Keys"), '[')
	for i, k := range over {
		if i > 0 {
			left = append(left, ',')
		}
		left = k.AppendJSON(left)
	}
	left = append(left, ']')
	for i := range b.node.Kids {
		switch k := &b.node.Kids[i]; k.Name {
		case "ProjectionExpression", "ConsistentRead", "ExpressionAttributeNames", "AttributesToGet":
			left = wire.AppendNode(wire.AppendField(left, k.Name), k)
		}
	}
	return append(left, '}')
}

// appendName appends `"name":` for a name that may need escaping.
func appendName(b []byte, name string) []byte {
	if len(b) > 0 && b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(wire.AppendString(b, name), ':')
}
