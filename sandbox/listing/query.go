package listing

import (
	"bytes"
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/expr"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// Query answers a Query request.
func Query(r *wire.Node, host Host) ([]byte, *wire.Error) {
	legacy := []string{"AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"}
	if r.Has("KeyConditions") && !r.Has("KeyConditionExpression") {
		legacy = legacy[:3]
	}
	if err := request.CheckStyles(r, []string{"ProjectionExpression", "FilterExpression", "KeyConditionExpression"},
		legacy); err != nil {
		return nil, err
	}
	l, err := readListing(r, host, "QueryFilter")
	if err != nil {
		return nil, err
	}
	if !r.Has("KeyConditions") && !r.Has("KeyConditionExpression") {
		return nil, wire.Invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the " +
			"request.")
	}
	p, err := request.Parse(r)
	if err != nil {
		return nil, err
	}
	if err := readKeyConditions(&p, r); err != nil {
		return nil, err
	}
	l.setExpressions(&p)
	if err := l.bind(); err != nil {
		return nil, err
	}
	q, err := l.plan(p.Keys)
	if err != nil {
		return nil, err
	}
	done, err := l.begin(table.Key(l.table.Schema.Prefix(q.hash)))
	if err != nil {
		return nil, err
	}
	defer done()
	if l.index != nil {
		return l.reply(l.addIndexed(l.indexed(q, "", ""), q.backward)), nil
	}
	return l.reply(q.run(l)), nil
}

// readKeyConditions adds the legacy KeyConditions, and checks the number of conditions.
func readKeyConditions(p *request.Parsed, r *wire.Node) *wire.Error {
	tests, err := request.LegacyTests(r.Get("KeyConditions"))
	if err != nil {
		return err
	}
	if p.Keys == nil {
		p.Keys = map[string]*expr.KeyTest{}
		for i := range tests {
			p.Keys[tests[i].Name] = tests[i].KeyTest()
		}
	}
	if n := len(p.Keys); n < 1 || n > 2 {
		return wire.Invalid("Conditions can be of length 1 or 2 only")
	}
	return nil
}

// queryPlan is a checked query: one partition, and possibly a test of the sort key.
type queryPlan struct {
	hash     *attr.Value   // the partition key
	test     *expr.KeyTest // of the sort key; nil: all of the partition
	sort     string        // name of the sort key
	backward bool          // descending order
}

// plan checks the key conditions, in the service's order.
func (l *listing) plan(keys map[string]*expr.KeyTest) (*queryPlan, *wire.Error) {
	schema := &l.schema
	if err := l.checkStart(); err != nil {
		return nil, err
	}
	if err := l.checkFilter(schema); err != nil {
		return nil, err
	}
	q := &queryPlan{backward: l.r.Has("ScanIndexForward") && !l.r.True("ScanIndexForward")}
	if schema.Range == nil && len(keys) > 1 {
		return nil, wire.Invalid("Query key condition not supported")
	}
	hash := keys[schema.Hash.Name]
	if hash == nil {
		return nil, wire.Invalid("Query condition missed key schema element: %s", schema.Hash.Name)
	}
	if err := checkTest(hash, schema.Hash); err != nil {
		return nil, err
	}
	if hash.Op != "=" {
		return nil, wire.Invalid("Query key condition not supported")
	}
	q.hash = hash.Values[0]
	if schema.Range != nil {
		q.sort = schema.Range.Name
		q.test = keys[q.sort]
		if q.test == nil && len(keys) > 1 {
			return nil, wire.Invalid("Query condition missed key schema element: %s", q.sort)
		}
		if q.test != nil {
			if err := checkTest(q.test, *schema.Range); err != nil {
				return nil, err
			}
		}
	}
	return q, l.checkQuery(q, schema)
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

// checkQuery refuses a start key outside of the query's conditions.
func (l *listing) checkQuery(q *queryPlan, schema *table.Schema) *wire.Error {
	if l.start == nil {
		return nil
	}
	switch {
	case q.test != nil && !q.test.Match(l.start.Get(q.sort)):
		return wire.Invalid("The provided starting key does not match the range key predicate")
	case !l.start.Get(schema.Hash.Name).Equal(q.hash):
		return wire.Invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	return nil
}

// beyond sorts after every sort key: it consists of the highest byte and is longer than any key.
var beyond = strings.Repeat("\xff", 1100)

// bounds returns the lowest and the highest key that the plan may select.
func (q *queryPlan) bounds(schema *table.Schema) (low, high table.Key) {
	prefix := schema.Prefix(q.hash)
	with := func(v *attr.Value) table.Key { return table.Key(table.Sortable(bytes.Clone(prefix), v)) }
	low, high = table.Key(prefix), table.Key(prefix)+table.Key(beyond)
	if q.test == nil {
		return low, high
	}
	v := q.test.Values[0]
	switch q.test.Op {
	case "=":
		return with(v), with(v)
	case "<", "<=":
		high = with(v)
	case ">", ">=":
		low = with(v)
	case "BETWEEN":
		return with(v), with(q.test.Values[1])
	case "begins_with":
		return with(v), with(v) + table.Key(beyond)
	}
	return low, high
}

// run fills the page from the table. It reports whether it reached the last record of the query.
func (q *queryPlan) run(l *listing) (ended bool) {
	schema := &l.table.Schema
	low, high := q.bounds(schema)
	prefix := string(schema.Prefix(q.hash))
	var after table.Key
	if l.start != nil {
		after = schema.KeyOf(l.start)
		if q.backward {
			high = after
		} else {
			low = after
		}
	}
	ended = true
	visit := func(r *table.Record) bool {
		switch {
		case r.Key < low || r.Key > high || !strings.HasPrefix(string(r.Key), prefix):
			return false
		case l.start != nil && r.Key == after:
			return true
		case q.test != nil && (q.test.Op == "<" && r.Key == high || q.test.Op == ">" && r.Key == low):
			return true
		}
		ended = l.add(r)
		return ended
	}
	if q.backward {
		l.from.Descend(high, visit)
	} else {
		l.from.Ascend(low, visit)
	}
	return ended
}
