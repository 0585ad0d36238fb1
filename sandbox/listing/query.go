package listing

import (
	"bytes"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
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
	done, err := l.begin(table.Key(l.schema.Prefix(q.partition)))
	if err != nil {
		return nil, err
	}
	defer done()
	if l.index != nil {
		return l.reply(l.addIndexed(l.indexed(q, "", ""), q.backward)), nil
	}
	return l.reply(q.run(l)), nil
}

// errConditions is the error for too few conditions, and for too many on the key of a table or of
// an index with as few attributes.
var errConditions = wire.Invalid("Conditions can be of length 1 or 2 only")

// readKeyConditions adds the legacy KeyConditions, and checks that there are conditions.
func readKeyConditions(p *request.Parsed, r *wire.Node) *wire.Error {
	tests, err := expr.LegacyTests(r.Get("KeyConditions"))
	if err != nil {
		return err
	}
	if p.Keys == nil {
		p.Keys = map[string]*expr.KeyTest{}
		for i := range tests {
			p.Keys[tests[i].Name] = tests[i].KeyTest()
		}
	}
	if len(p.Keys) == 0 {
		return errConditions
	}
	return nil
}

// beyond sorts after every sort key: it consists of the highest byte and is longer than any key.
var beyond = strings.Repeat("\xff", 1100)

// bounds returns the lowest and the highest key that the plan may select.
func (q *queryPlan) bounds(schema *table.Schema) (low, high table.Key) {
	prefix := schema.Prefix(q.partition)
	with := func(v *attr.Value) table.Key { return table.Key(table.Sortable(bytes.Clone(prefix), v)) }
	low, high = table.Key(prefix), table.Key(prefix)+table.Key(beyond)
	if q.tests == nil {
		return low, high
	}
	test := q.tests[0]
	v := test.Values[0]
	switch test.Op {
	case "=":
		return with(v), with(v)
	case "<", "<=":
		high = with(v)
	case ">", ">=":
		low = with(v)
	case "BETWEEN":
		return with(v), with(test.Values[1])
	case "begins_with":
		return with(v), with(v) + table.Key(beyond)
	}
	return low, high
}

// run fills the page from the table. It reports whether it reached the last record of the query.
func (q *queryPlan) run(l *listing) (ended bool) {
	schema := &l.table.Schema
	low, high := q.bounds(schema)
	prefix := string(schema.Prefix(q.partition))
	op := "" // of the test
	if q.tests != nil {
		op = q.tests[0].Op
	}
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
		case op == "<" && r.Key == high || op == ">" && r.Key == low:
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
