package dynamo

import (
	"math"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
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
	rec, units, end := s.read(t, t.Schema.KeyOf(key), r.True("ConsistentRead"), math.MaxInt)
	if end == refused {
		return nil, request.ErrThroughput
	}
	out := []byte{'{'}
	if rec != nil {
		out = appendItem(wire.AppendField(append(make([]byte, 0, len(rec.JSON)+64), '{'), "Item"), rec, projection)
	}
	var b request.Bill
	b.Add(t.Name, units)
	return append(b.AppendOne(out, r.Node), '}'), nil
}

// batchRead is the part of a BatchGetItem that concerns one table.
type batchRead struct {
	node       *wire.Node
	table      *table.Table
	keys       []attr.Map
	projection *expr.Projection
}

// The limits of one BatchGetItem. The first item with which a reply would exceed maxBatchBytes, and
// the keys after it, are returned as UnprocessedKeys. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
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
	p := batchPage{s: s, left: s.Faults.left(countKeys(reads))}
	for i := range reads {
		p.read(&reads[i])
	}
	if p.refused && p.bill.Empty() {
		return nil, request.ErrThroughput
	}
	out := append(wire.AppendField([]byte{'{'}, "Responses"), '{')
	out = append(append(out, p.items...), '}')
	out = append(wire.AppendField(out, "UnprocessedKeys"), '{')
	out = append(append(out, p.over...), '}')
	return append(p.bill.AppendAll(out, r.Node), '}'), nil
}

// countKeys returns how many keys a BatchGetItem names.
func countKeys(reads []batchRead) (n int) {
	for i := range reads {
		n += len(reads[i].keys)
	}
	return n
}

// readBatchGet reads the keys of each table and checks their number.
func readBatchGet(items *wire.Node) ([]batchRead, *wire.Error) {
	if len(items.Kids) == 0 {
		return nil, wire.Invalid("The requestItems parameter is required for BatchGetItem")
	}
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

// batchPage is the reply of one BatchGetItem while it is composed.
type batchPage struct {
	s       *Server
	items   []byte // fields of Responses
	over    []byte // fields of UnprocessedKeys
	bytes   int    // size of the items so far
	full    bool   // an item did not fit
	left    []bool // which keys a fault leaves unprocessed; nil: none
	refused bool   // the limits of a table refused a key
	bill    request.Bill
}

// read reads one table's keys. Those that no longer fit, that the table's limits refuse, or that a
// fault leaves, become UnprocessedKeys.
func (p *batchPage) read(b *batchRead) {
	p.items = append(appendName(p.items, b.node.Name), '[')
	var over []attr.Map
	var found []*table.Record
	for _, k := range b.keys {
		leave := false
		if len(p.left) > 0 {
			leave, p.left = p.left[0], p.left[1:]
		}
		if leave || p.full {
			over = append(over, k)
			continue
		}
		rec, units, end := p.s.read(b.table, b.table.Schema.KeyOf(k), b.node.True("ConsistentRead"), maxBatchBytes-p.bytes)
		if end != read {
			over = append(over, k)
			p.full, p.refused = p.full || end == noRoom, p.refused || end == refused
			continue
		}
		if p.bill.Add(b.table.Name, units); rec != nil {
			p.bytes += rec.Size
			found = append(found, rec)
		}
	}
	for i, rec := range p.s.Faults.arrange(found) {
		if i > 0 {
			p.items = append(p.items, ',')
		}
		p.items = appendItem(p.items, rec, b.projection)
	}
	p.items = append(p.items, ']')
	p.over = b.appendUnprocessed(p.over, over)
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
