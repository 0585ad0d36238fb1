package listing

import (
	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

var errStartKey = wire.Invalid("The provided starting key is invalid")

// checkStart checks the ExclusiveStartKey of a Scan against the schemas of the table and the index.
func (l *listing) checkStart() *wire.Error {
	if l.start == nil {
		return nil
	}
	if err := l.checkStartCount(); err != nil {
		return err
	}
	for _, schema := range []table.Schema{l.table.Schema, l.schema} {
		if err := schema.CheckKey(l.startOf(&schema)); err != nil {
			return badStart(err)
		}
	}
	return nil
}

// checkStartCount refuses an ExclusiveStartKey that has not as many attributes as the keys of the
// table and the index have together, and one of a Scan that has others.
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
	wrong := len(l.start) != len(want)
	for _, name := range want {
		wrong = wrong || l.scan && l.start.Get(name) == nil
	}
	switch {
	case wrong && l.scan && l.index == nil:
		return badStart(table.ErrKeySchema)
	case wrong:
		return errStartKey
	}
	return nil
}

// checkStartValue checks one attribute of a Query's ExclusiveStartKey.
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

// checkStartOfTable checks the attributes of a Query's ExclusiveStartKey that are the table's key.
func (l *listing) checkStartOfTable() *wire.Error {
	if l.start == nil || l.index == nil {
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
