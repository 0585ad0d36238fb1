package dynamo

import (
	"bytes"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// write is one write of one item: a put, a delete, an update or a condition check. It is read and
// checked in steps: readPut, readDelete or readUpdate from the request, bind against the table,
// prepare against the item under the table's lock.
type write struct {
	node      *wire.Node
	table     *table.Table
	key       table.Key
	keyMap    attr.Map      // the key as requested; for a put, the whole item
	record    *table.Record // of a put
	put       bool
	delete    bool
	update    *expr.Update
	create    bool // the update may create the item
	condition *expr.Condition

	old      *table.Record // the item before and after
	now      *table.Record
	oldItem  attr.Map // decoded only for conditions and updates
	newItem  attr.Map
	modified bool // now differs from old
}

// putItem answers PutItem.
func (s *Server) putItem(r *call) ([]byte, *wire.Error) {
	w, err := readPut(r.Node)
	if err != nil {
		return nil, err
	}
	if w.table, err = s.find(r.Str("TableName")); err != nil {
		return nil, err
	}
	if err := w.bind(); err != nil {
		return nil, err
	}
	return s.writeOne(r, w)
}

// readPut reads a put and checks what depends on the request alone.
func readPut(n *wire.Node) (*write, *wire.Error) {
	if err := request.CheckStyles(n, []string{"ConditionExpression"},
		[]string{"Expected", "ConditionalOperator"}); err != nil {
		return nil, err
	}
	item, err := request.Item(n, "Item")
	if err != nil {
		return nil, err
	}
	if v := n.Str("ReturnValues"); v != "" && v != "ALL_OLD" && v != "NONE" {
		return nil, wire.Invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	if err := request.CheckSize(item); err != nil {
		return nil, err
	}
	w := &write{node: n, keyMap: item, newItem: item, put: true}
	return w, w.readConditions()
}

// readConditions reads the condition in either style, and the update expression.
func (w *write) readConditions() *wire.Error {
	old, err := request.Expected(w.node)
	if err != nil {
		return err
	}
	p, err := request.Parse(w.node)
	if err != nil {
		return err
	}
	w.condition, w.update = p.Condition, p.Update
	if w.condition == nil {
		w.condition = old
	}
	return nil
}

// deleteItem answers DeleteItem.
func (s *Server) deleteItem(r *call) ([]byte, *wire.Error) {
	w, err := readDelete(r.Node)
	if err != nil {
		return nil, err
	}
	if w.table, err = s.find(r.Str("TableName")); err != nil {
		return nil, err
	}
	if err := w.bind(); err != nil {
		return nil, err
	}
	return s.writeOne(r, w)
}

// readDelete reads a delete and checks what depends on the request alone.
func readDelete(n *wire.Node) (*write, *wire.Error) {
	if err := request.CheckStyles(n, []string{"ConditionExpression"},
		[]string{"Expected", "ConditionalOperator"}); err != nil {
		return nil, err
	}
	key, err := request.Item(n, "Key")
	if err != nil {
		return nil, err
	}
	if v := n.Str("ReturnValues"); v != "" && v != "ALL_OLD" && v != "NONE" {
		return nil, wire.Invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	w := &write{node: n, keyMap: key, delete: true}
	return w, w.readConditions()
}

// updateItem answers UpdateItem.
func (s *Server) updateItem(r *call) ([]byte, *wire.Error) {
	w, err := readUpdate(r.Node)
	if err != nil {
		return nil, err
	}
	if w.table, err = s.find(r.Str("TableName")); err != nil {
		return nil, err
	}
	if err := w.bind(); err != nil {
		return nil, err
	}
	return s.writeOne(r, w)
}

// readUpdate reads an update and checks what depends on the request alone.
func readUpdate(n *wire.Node) (*write, *wire.Error) {
	if err := request.CheckStyles(n, []string{"UpdateExpression", "ConditionExpression"},
		[]string{"AttributeUpdates", "Expected", "ConditionalOperator"}); err != nil {
		return nil, err
	}
	key, err := request.Item(n, "Key")
	if err != nil {
		return nil, err
	}
	legacy, err := request.AttributeUpdates(n)
	if err != nil {
		return nil, err
	}
	w := &write{node: n, keyMap: key}
	if err := w.readConditions(); err != nil {
		return nil, err
	}
	if w.update == nil {
		w.update = legacy
	}
	if w.update == nil {
		w.update = &expr.Update{}
	}
	w.create = len(w.update.Paths) == 0 || !w.update.OnlyRemoves()
	return w, nil
}

// bind checks the write against its table's schema and sets the item's key.
func (w *write) bind() *wire.Error {
	schema := &w.table.Schema
	if w.put {
		if err := schema.CheckItem(w.keyMap); err != nil {
			return err
		}
		w.table.RLock()
		err := w.table.CheckIndexKeys(w.keyMap, nil, false)
		w.table.RUnlock()
		if err != nil {
			return err
		}
	} else if err := schema.CheckKey(w.keyMap); err != nil {
		return err
	}
	w.key = schema.KeyOf(w.keyMap)
	if w.put {
		w.record = table.NewRecord(w.key, w.keyMap)
	}
	if w.update != nil {
		for _, name := range schema.Names() {
			if w.update.Touches(name) {
				return wire.BadValue("Cannot update attribute %s. This attribute is part of the key", name)
			}
		}
		if err := w.table.NoNestedKeys(w.update.Nested()); err != nil {
			return err
		}
	}
	if w.condition != nil {
		return w.table.NoNestedKeys(w.condition.Nested())
	}
	return nil
}

// prepare reads the item, evaluates the condition and computes the new item. The caller holds the
// table's lock.
func (w *write) prepare() *wire.Error {
	w.old = w.table.Items.Get(w.key)
	if w.old != nil && (w.condition != nil || w.update != nil) {
		w.oldItem = w.old.Item()
	}
	if w.condition != nil && !w.condition.Match(w.oldItem) {
		var json []byte
		if w.old != nil {
			json = w.old.JSON
		}
		return conditionFailed(w.node, json)
	}
	switch {
	case w.put:
		w.now = w.record
	case w.delete:
	case w.update != nil:
		if err := w.applyUpdate(); err != nil {
			return err
		}
	default:
		w.now, w.newItem = w.old, w.oldItem
	}
	w.modified = !same(w.old, w.now)
	return nil
}

// applyUpdate computes the item that the update leaves, and checks it.
func (w *write) applyUpdate() *wire.Error {
	item := w.oldItem.Clone()
	if w.old == nil {
		if !w.create {
			return nil // REMOVE and DELETE have no effect on a missing item
		}
		item = w.keyMap.Clone()
	}
	if err := w.update.Apply(&item); err != nil {
		return err
	}
	if err := request.CheckUpdated(item); err != nil {
		return err
	}
	if err := w.table.CheckIndexKeys(item, w.oldItem, true); err != nil {
		return err
	}
	w.newItem, w.now = item, table.NewRecord(w.key, item)
	return nil
}

// same reports whether a write changes nothing: the items are equal by value, or both missing. Such
// a write makes no stream record.
func same(old, now *table.Record) bool {
	if old == nil || now == nil {
		return old == now
	}
	return old == now || bytes.Equal(old.JSON, now.JSON)
}

// changeOf returns the change from one record to another, of which one may be nil. keys is an item
// with the key attributes. The change's size is the size of the keys and of the images in the
// stream's view. The caller holds the table's lock.
func changeOf(t *table.Table, old, now *table.Record, keys attr.Map) stream.Change {
	keys = t.Schema.KeyMap(keys)
	key := keys.AppendJSON(nil)
	c := stream.Change{Table: t.Name, Op: "MODIFY", Keys: key, ItemKey: key, SizeBytes: keys.Size(),
		PartitionKey: []byte(keys[0].Value.Str)}
	view := t.Def.StreamView
	if old != nil {
		c.Old = old.JSON
		if view == "OLD_IMAGE" || view == "NEW_AND_OLD_IMAGES" {
			c.SizeBytes += old.Size
		}
	}
	if now != nil {
		c.New = now.JSON
		if view == "NEW_IMAGE" || view == "NEW_AND_OLD_IMAGES" {
			c.SizeBytes += now.Size
		}
	}
	switch {
	case old == nil:
		c.Op = "INSERT"
	case now == nil:
		c.Op = "REMOVE"
	}
	return c
}

// store puts a prepared write's result into the table and returns the change.
func (w *write) store(s *Server) stream.Change {
	t := w.table
	if w.now == nil {
		t.Items.Delete(w.old)
	} else {
		t.Items.Put(w.old, w.now, w.newItem)
	}
	s.remember(t, w.key, w.old, w.now)
	return changeOf(t, w.old, w.now, w.keyMap)
}

// units returns the write capacity that the write consumes.
func (w *write) units() float64 {
	before, after := 0, 0
	if w.old != nil {
		before = w.old.Size
	}
	if w.now != nil {
		after = w.now.Size
	}
	return request.WriteUnits(before, after)
}

// writeOne commits a single write and returns its reply.
func (s *Server) writeOne(r *call, w *write) ([]byte, *wire.Error) {
	w.table.Lock()
	err := w.commit(s)
	w.table.Unlock()
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, 128), '{')
	out = w.appendAttributes(out)
	out = w.appendCollection(out)
	var b request.Bill
	b.Add(w.table.Name, w.units())
	return append(b.AppendOne(out, r.Node), '}'), nil
}

// commit prepares and stores the write, and commits its change to the stream. The caller holds the
// table's lock.
func (w *write) commit(s *Server) *wire.Error {
	if w.table.Gone {
		return errNoTable
	}
	if err := w.prepare(); err != nil {
		return err
	}
	if w.modified {
		s.o.Stream.Commit(w.store(s))
	}
	return nil
}

// appendAttributes appends the attributes that ReturnValues selects.
func (w *write) appendAttributes(out []byte) []byte {
	switch w.node.Str("ReturnValues") {
	case "ALL_OLD":
		if w.old != nil {
			out = append(wire.AppendField(out, "Attributes"), w.old.JSON...)
		}
	case "ALL_NEW":
		if w.now != nil {
			out = append(wire.AppendField(out, "Attributes"), w.now.JSON...)
		}
	case "UPDATED_OLD":
		out = appendPaths(out, w.oldItem, w.update.Paths)
	case "UPDATED_NEW":
		// a removed path of a list may have a value: the next element moved up
		out = appendPaths(out, w.newItem, w.update.Paths)
	}
	return out
}

// appendCollection appends the metrics of the item's collection. Only tables with local indexes
// have them; the size is always given as 0 to 1 GB.
func (w *write) appendCollection(out []byte) []byte {
	w.table.RLock()
	defer w.table.RUnlock()
	if w.node.Str("ReturnItemCollectionMetrics") != "SIZE" || len(w.table.Def.Local) == 0 {
		return out
	}
	hash := w.table.Schema.Hash[0].Name
	key := attr.Map{{Name: hash, Value: *w.keyMap.Get(hash)}}
	out = append(wire.AppendField(out, "ItemCollectionMetrics"), '{')
	out = key.AppendJSON(wire.AppendField(out, "ItemCollectionKey"))
	return append(out, `,"SizeEstimateRangeGB":[0,1]}`...)
}

// appendPaths appends the values at some paths of an item, if there are any.
func appendPaths(out []byte, item attr.Map, paths []expr.Path) []byte {
	if part := expr.NewProjection(paths).Of(item); len(part) > 0 {
		out = part.AppendJSON(wire.AppendField(out, "Attributes"))
	}
	return out
}

var errConditionFailed = &wire.Error{Code: "ConditionalCheckFailedException", Message: "The conditional request failed"}

// conditionFailed returns the error of a write with a failed condition. It includes old, the item's
// JSON, when the request asks for it.
func conditionFailed(n *wire.Node, old []byte) *wire.Error {
	if n.Str("ReturnValuesOnConditionCheckFailure") != "ALL_OLD" || old == nil {
		return errConditionFailed
	}
	err := *errConditionFailed
	err.Extra = `,"Item":` + string(old)
	return &err
}
