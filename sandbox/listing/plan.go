package listing

import (
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// queryPlan is a checked query: one partition, and tests of the first sort key attributes.
type queryPlan struct {
	schema    *table.Schema
	partition attr.Map        // the attributes of the partition key
	tests     []*expr.KeyTest // of the first sort key attributes; all but the last are equalities
	backward  bool            // descending order
}

// plan checks the key conditions and the start key, in the service's order: for each attribute of
// the key first the start key, then the condition. Source: architect/dynalite, test/query.js.
func (l *listing) plan(keys map[string]*expr.KeyTest) (*queryPlan, *wire.Error) {
	schema := &l.schema
	q := &queryPlan{schema: schema, backward: l.r.Has("ScanIndexForward") && !l.r.True("ScanIndexForward")}
	if !q.several() && len(keys) > 2 {
		return nil, errConditions
	}
	if err := l.checkStartCount(); err != nil {
		return nil, err
	}
	if err := l.checkFilter(schema); err != nil {
		return nil, err
	}
	for i, k := range schema.All() {
		if err := l.checkStartValue(&k, i < len(schema.Hash)); err != nil {
			return nil, err
		}
		if err := q.checkCondition(keys, &k, i < len(schema.Hash)); err != nil {
			return nil, err
		}
	}
	if err := q.set(keys); err != nil {
		return nil, err
	}
	if err := l.checkStartOfTable(); err != nil {
		return nil, err
	}
	if err := l.checkQuery(q); err != nil {
		return nil, err
	}
	return q, l.checkAllAttributes()
}

// several reports whether the partition key or the sort key has several attributes.
func (q *queryPlan) several() bool { return len(q.schema.Hash) > 1 || len(q.schema.Range) > 1 }

// checkCondition checks the condition on one key attribute; there may be none.
func (q *queryPlan) checkCondition(keys map[string]*expr.KeyTest, k *table.KeyAttr, hash bool) *wire.Error {
	test := keys[k.Name]
	switch {
	case q.several() && test == nil:
		return nil // see set
	case q.several():
		return checkTest(test, *k)
	case hash && len(q.schema.Range) == 0 && len(keys) > 1:
		return wire.Invalid("Query key condition not supported")
	case test == nil && (hash || len(keys) > 1):
		return wire.Invalid("Query condition missed key schema element: %s", k.Name)
	case test == nil:
		return nil
	}
	if err := checkTest(test, *k); err != nil {
		return err
	}
	if hash && test.Op != "=" {
		return wire.Invalid("Query key condition not supported")
	}
	return nil
}

// set sets the partition and the tests. It refuses conditions on several attributes that select no
// range of the index: each attribute of the partition key needs an equality, and each attribute of
// the sort key before one with a condition.
func (q *queryPlan) set(keys map[string]*expr.KeyTest) *wire.Error {
	used := 0
	var missing []string
	for _, k := range q.schema.Hash {
		test := keys[k.Name]
		if test == nil || test.Op != "=" {
			missing = append(missing, k.Name)
			continue
		}
		used++
		q.partition = append(q.partition, attr.Attr{Name: k.Name, Value: *test.Values[0]})
	}
	if missing != nil {
		return wire.Invalid("HASH key attributes %s must have equality conditions specified in the query",
			strings.Join(missing, ", "))
	}
	q.partition.Sorted()
	for i, k := range q.schema.Range {
		test := keys[k.Name]
		if test == nil {
			continue
		}
		used++
		for _, before := range q.schema.Range[len(q.tests):i] {
			missing = append(missing, before.Name)
		}
		if last := len(q.tests) - 1; missing == nil && last >= 0 && q.tests[last].Op != "=" {
			missing = append(missing, q.schema.Range[last].Name)
		}
		if missing != nil {
			return wire.Invalid("RANGE key attributes %s must have equality conditions specified in the query because a "+
				"condition is present on key attribute %s", strings.Join(missing, ", "), k.Name)
		}
		q.tests = append(q.tests, test)
	}
	if used < len(keys) {
		return wire.Invalid("Query key condition not supported")
	}
	return nil
}

// selects reports whether the plan selects an item that has all key attributes.
func (q *queryPlan) selects(item attr.Map) bool {
	for i := range q.partition {
		if !item.Get(q.partition[i].Name).Equal(&q.partition[i].Value) {
			return false
		}
	}
	return q.passes(item)
}

// passes reports whether an item that has all key attributes passes the tests of the sort key.
func (q *queryPlan) passes(item attr.Map) bool {
	for i, test := range q.tests {
		if !test.Match(item.Get(q.schema.Range[i].Name)) {
			return false
		}
	}
	return true
}

// unindexable are the operators that key conditions do not take.
var unindexable = map[string]bool{"attribute_not_exists": true, "attribute_exists": true, "<>": true, "contains": true,
	"IN": true}

// checkTest checks the test of one key attribute against its type.
func checkTest(test *expr.KeyTest, k table.KeyAttr) *wire.Error {
	if unindexable[test.Op] {
		return wire.Invalid("Attempted conditional constraint is not an indexable operation")
	}
	for _, v := range test.Values {
		if v.Kind != k.Kind {
			return wire.BadValue("Condition parameter type does not match schema type")
		}
		if v.Str == "" && test.Op != "begins_with" {
			kind := "string"
			if v.Kind == attr.B {
				kind = "binary"
			}
			return wire.Invalid("One or more parameter values are not valid. The AttributeValue for a key attribute "+
				"cannot contain an empty %s value. Key: %s", kind, k.Name)
		}
	}
	return nil
}

// checkFilter refuses a filter on key attributes.
func (l *listing) checkFilter(schema *table.Schema) *wire.Error {
	if l.filter == nil {
		return nil
	}
	heads := l.filter.Heads()
	for _, name := range schema.Names() {
		if !heads[name] {
			continue
		}
		if l.r.Has("QueryFilter") {
			return wire.Invalid("QueryFilter can only contain non-primary key attributes: Primary key attribute: %s", name)
		}
		return wire.Invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
	}
	return nil
}
