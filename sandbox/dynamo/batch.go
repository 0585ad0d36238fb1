package dynamo

import (
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// maxBatchWrite is how many items one BatchWriteItem may write.
const maxBatchWrite = 25

// batchWrite answers BatchWriteItem: each write is committed by itself.
func (s *Server) batchWrite(r *call) ([]byte, *wire.Error) {
	writes, err := readBatchWrite(r.Get("RequestItems"))
	if err != nil {
		return nil, err
	}
	for i := range writes {
		w := writes[i]
		if w.table, err = s.find(tableOf(w.node.Name)); err != nil {
			return nil, err
		}
		if err := w.bind(); err != nil {
			return nil, batchKeyError(err)
		}
	}
	if hasDuplicates(writes) {
		return nil, wire.Invalid("Provided list of item keys contains duplicates")
	}
	var b request.Bill
	for _, w := range writes {
		w.table.Lock()
		err := w.commit(s)
		w.table.Unlock()
		if err != nil {
			return nil, err
		}
		b.Add(w.table.Name, w.units())
	}
	out := append(wire.AppendField([]byte{'{'}, "UnprocessedItems"), '{', '}')
	return append(b.AppendAll(out, r.Node), '}'), nil
}

// batchKeyError returns the error of batches for a wrong key, which is less specific than the error
// of PutItem.
func batchKeyError(err *wire.Error) *wire.Error {
	if strings.Contains(err.Message, "Missing the key") || strings.Contains(err.Message, "Type mismatch for key") {
		return wire.Invalid("The provided key element does not match the schema")
	}
	return err
}

// hasDuplicates reports whether two writes are of the same item.
func hasDuplicates(writes []*write) bool {
	type id struct {
		t *table.Table
		k table.Key
	}
	seen := make(map[id]bool, len(writes))
	for _, w := range writes {
		if seen[id{w.table, w.key}] {
			return true
		}
		seen[id{w.table, w.key}] = true
	}
	return false
}

// readBatchWrite reads the writes of a batch and checks their number.
func readBatchWrite(items *wire.Node) ([]*write, *wire.Error) {
	if len(items.Kids) == 0 {
		return nil, wire.Invalid("The requestItems parameter is required for BatchWriteItem")
	}
	var writes []*write
	for i := range items.Kids {
		n := &items.Kids[i]
		if len(n.Kids) == 0 || len(n.Kids) > maxBatchWrite {
			return nil, wire.Invalid("1 validation error detected: Value '%s' at 'requestItems' failed to satisfy constraint: "+
				"Map value must satisfy constraint: [Member must have length less than or equal to 25, "+
				"Member must have length greater than or equal to 1]", wire.Show(items))
		}
		for j := range n.Kids {
			w, err := readBatchEntry(&n.Kids[j])
			if err != nil {
				return nil, err
			}
			w.node = &wire.Node{Kind: wire.Object, Name: n.Name}
			writes = append(writes, w)
		}
	}
	if len(writes) > maxBatchWrite {
		return nil, wire.Invalid("Too many items requested for the BatchWriteItem call")
	}
	return writes, nil
}

// readBatchEntry reads one write: a put or a delete.
func readBatchEntry(n *wire.Node) (*write, *wire.Error) {
	put, del := n.Get("PutRequest"), n.Get("DeleteRequest")
	switch {
	case put != nil && del != nil:
		return nil, wire.Invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the " +
			"supported datatypes")
	case put != nil:
		item, err := request.Item(put, "Item")
		if err != nil {
			return nil, err
		}
		return &write{put: true, keyMap: item, newItem: item}, request.CheckSize(item)
	case del != nil:
		key, err := request.Item(del, "Key")
		return &write{delete: true, keyMap: key}, err
	}
	return nil, wire.Invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}
