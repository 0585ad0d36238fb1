package listing

import (
	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

var errStartKey = wire.Invalid("The provided starting key is invalid")

// checkScan checks the ExclusiveStartKey of a Scan against the schemas of the index and the table.
// Source of the order: architect/dynalite, test/scan.js.
func (l *listing) checkScan() *wire.Error {
	if err := l.checkStartCount(); err != nil {
		return err
	}
	if l.index != nil {
		for i, k := range l.schema.All() {
			if err := l.checkStartValue(&k, i < len(l.schema.Hash)); err != nil {
				return err
			}
		}
	}
	if err := l.checkAllAttributes(); err != nil {
		return err
	}
	return l.checkStartOfTable()
}

// checkStartCount refuses an ExclusiveStartKey that has not as many attributes as the keys of the
// table and the index have together.
func (l *listing) checkStartCount() *wire.Error {
	if l.start == nil {
		return nil
	}
	want := l.table.Schema.Names()
	for _, name := range l.schema.Names() {
		if !l.table.Schema.Has(name) {
			want = append(want, name)
		}
	}
	switch {
	case len(l.start) == len(want):
		return nil
	case l.scan && l.index == nil:
		return badStart(table.ErrKeySchema)
	}
	return errStartKey
}

// checkStartValue checks the attribute of an ExclusiveStartKey that is of a key.
func (l *listing) checkStartValue(k *table.KeyAttr, hash bool) *wire.Error {
	if l.start == nil {
		return nil
	}
	v := l.start.Get(k.Name)
	if v == nil {
		return errStartKey
	}
	one := table.Schema{Hash: []table.KeyAttr{*k}}
	if !hash {
		one = table.Schema{Range: one.Hash}
	}
	err := one.CheckKey(attr.Map{{Name: k.Name, Value: *v}})
	if err == nil || err == table.ErrKeySchema {
		return err
	}
	return badStart(err)
}

// checkStartOfTable checks the attributes of an ExclusiveStartKey that are the table's key.
func (l *listing) checkStartOfTable() *wire.Error {
	if l.start == nil {
		return nil
	}
	if err := l.table.Schema.CheckKey(l.startOf(&l.table.Schema)); err != nil {
		return badStart(err)
	}
	return nil
}

// startOf returns the attributes of the ExclusiveStartKey that are of a key.
func (l *listing) startOf(schema *table.Schema) attr.Map {
	var key attr.Map
	for i := range l.start {
		if schema.Has(l.start[i].Name) {
			key = append(key, l.start[i])
		}
	}
	return key
}

// badStart returns the error of a start key with a reason.
func badStart(err *wire.Error) *wire.Error {
	return wire.Invalid("%s", errStartKey.Message+": "+err.Message)
}

// checkQuery refuses a start key outside of the query's conditions, and one of a table without a
// sort key, of which a query returns one item. Source: scylladb/scylladb,
// test/alternator/test_query.py and test_gsi.py.
func (l *listing) checkQuery(q *queryPlan) *wire.Error {
	if l.start == nil {
		return nil
	}
	inside := true
	for i := range q.partition {
		inside = inside && l.start.Get(q.partition[i].Name).Equal(&q.partition[i].Value)
	}
	switch {
	case !q.passes(l.start):
		return wire.Invalid("The provided starting key does not match the range key predicate")
	case !inside && q.tests != nil:
		return wire.Invalid("The query can return at most one row and cannot be restarted")
	case !inside:
		return wire.Invalid("The provided starting key is outside query boundaries based on provided conditions")
	case l.index == nil && len(q.schema.Range) == 0:
		v := l.start[0].Value
		return wire.Invalid("The provided exclusive start key is invalid: ExclusiveStartKey: {%s=AttributeValue: {%s:%s}}",
			l.start[0].Name, v.Kind, v.Str)
	}
	return nil
}
