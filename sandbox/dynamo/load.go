package dynamo

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// Put puts an item, given as a DynamoDB JSON object, without HTTP. It is checked, committed and streamed as in PutItem.
func (s *Server) Put(tableName string, item []byte) error { return s.Load(tableName, item) }

// Load puts many items, as Put does. After an error the items before it stay.
func (s *Server) Load(tableName string, items ...[]byte) error {
	t, bad := s.find(tableName)
	if bad != nil {
		return bad
	}
	for _, json := range items {
		w, err := readLoaded(json)
		if err != nil {
			return err
		}
		w.table = t
		if bad := w.bind(); bad != nil {
			return bad
		}
		t.Lock()
		bad := w.commit(s)
		t.Unlock()
		if bad != nil {
			return bad
		}
	}
	return nil
}

// readLoaded returns the write of an item in DynamoDB JSON. The caller sets its table.
func readLoaded(json []byte) (*write, error) {
	n, err := wire.Parse(string(json))
	if err != nil {
		return nil, fmt.Errorf("read item: %w", err)
	}
	if bad := attr.CheckMapShape(n); bad != nil {
		return nil, bad
	}
	item, bad := attr.DecodeMap(n)
	if bad == nil {
		bad = request.CheckSize(item)
	}
	if bad != nil {
		return nil, bad
	}
	return &write{node: &wire.Node{Kind: wire.Object}, keyMap: item, newItem: item, put: true}, nil
}

// Delete deletes an item by its key, given as a DynamoDB JSON object, without HTTP.
func (s *Server) Delete(tableName string, key []byte) error {
	w, err := readLoaded(key)
	if err != nil {
		return err
	}
	t, bad := s.find(tableName)
	if bad != nil {
		return bad
	}
	w.put, w.delete, w.table = false, true, t
	if bad := w.bind(); bad != nil {
		return bad
	}
	t.Lock()
	defer t.Unlock()
	if bad := w.commit(s); bad != nil {
		return bad
	}
	return nil
}

// Items returns every item of a table as DynamoDB JSON, in the order of a Scan. The slices are shared: do not change
// them.
func (s *Server) Items(tableName string) ([][]byte, error) {
	t, bad := s.find(tableName)
	if bad != nil {
		return nil, bad
	}
	t.RLock()
	defer t.RUnlock()
	items := make([][]byte, 0, t.Items.Len())
	t.Items.Ascend("", func(r *table.Record) bool {
		items = append(items, r.JSON)
		return true
	})
	return items, nil
}
