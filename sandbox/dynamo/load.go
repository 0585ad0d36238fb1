package dynamo

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Put puts an item, given as a DynamoDB JSON object, without HTTP. It is checked, committed and
// streamed as in PutItem.
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

// Fill puts many items without HTTP that are older than the table's stream: they make no stream
// records and no lines of the ledger. It decodes them on all processors and holds the table's lock
// for a thousand items at a time, so a table may be filled while it is used. After an error some of
// the other items are there. The items may be one slice that is reused.
func (s *Server) Fill(tableName string, items iter.Seq[[]byte]) error {
	t, bad := s.find(tableName)
	if bad != nil {
		return bad
	}
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	var batch [][]byte
	send := func() {
		full := batch
		batch = nil
		workers.Go(func() error { return s.fill(t, full) })
	}
	for json := range items {
		if batch = append(batch, bytes.Clone(json)); len(batch) == fillBatch {
			send()
		}
	}
	send()
	return workers.Wait()
}

// fillBatch is how many items Fill puts under one lock.
const fillBatch = 1000

// fill puts a batch of Fill's items.
func (s *Server) fill(t *table.Table, batch [][]byte) error {
	writes := make([]*write, 0, len(batch))
	for _, json := range batch {
		w, err := readLoaded(json)
		if err != nil {
			return err
		}
		w.table = t
		if bad := w.bind(); bad != nil {
			return bad
		}
		writes = append(writes, w)
	}
	t.Lock()
	defer t.Unlock()
	if t.Gone {
		return errNoTable
	}
	for _, w := range writes {
		if bad := w.prepare(); bad != nil {
			return bad
		}
		t.Items.Put(w.old, w.now, w.newItem)
		s.remember(t, w.key, w.old, w.now)
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

// Items returns every item of a table as DynamoDB JSON, in the order of a Scan. The slices are
// shared: do not change them.
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
