package dynamo

import (
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

const maxBatchWrite = 25

func (s *Server) batchWrite(r *request) ([]byte, *wire.Error) {
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
			return nil, err
		}
	}
	if hasTwins(writes) {
		return nil, wire.Invalid("Provided list of item keys contains duplicates")
	}
	b := bill{}
	for _, w := range writes {
		w.table.mu.Lock()
		err := w.commit(s)
		w.table.mu.Unlock()
		if err != nil {
			return nil, err
		}
		b.add(w.table.name, w.units())
	}
	out := append(wire.AppendField([]byte{'{'}, "UnprocessedItems"), '{', '}')
	return append(b.appendAll(out, r), '}'), nil
}

// hasTwins says whether two writes are of the same item.
func hasTwins(writes []*write) bool {
	type id struct {
		t *Table
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

func readBatchWrite(items *wire.Node) ([]*write, *wire.Error) {
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

func readBatchEntry(n *wire.Node) (*write, *wire.Error) {
	put, del := n.Get("PutRequest"), n.Get("DeleteRequest")
	switch {
	case put != nil && del != nil:
		return nil, wire.Invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	case put != nil:
		item, err := itemField(put, "Item")
		if err != nil {
			return nil, err
		}
		return &write{put: true, keyMap: item, newItem: item}, checkSize(item)
	case del != nil:
		key, err := itemField(del, "Key")
		return &write{delete: true, keyMap: key}, err
	}
	return nil, wire.Invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}
