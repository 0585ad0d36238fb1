package pattern

import (
	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// get reads a GetItem.
func (c *call) get(n *wire.Node) Reason {
	p, ok := c.pattern(Read, n.Str("TableName"))
	if !ok {
		return BadTable
	}
	tests, reason := c.item(&p, n, n.Get("Key"))
	if reason != "" {
		return reason
	}
	c.add(p)
	c.ask(p, tests)
	return ""
}

// item adds the key of one item to a pattern, and the flags of its request.
func (c *call) item(p *Pattern, n, key *wire.Node) (tests []access.Test, reason Reason) {
	if key == nil || attr.CheckMapShape(key) != nil {
		return nil, BadKey
	}
	values, err := attr.DecodeMap(key)
	if err != nil || len(values) == 0 || len(values) > 2 {
		return nil, BadKey
	}
	tests = make([]access.Test, len(values))
	for i := range values {
		v, ok := value(&values[i].Value)
		if !ok {
			return nil, BadKey
		}
		tests[i] = access.Test{Attr: values[i].Name, Op: access.Equal}
		tests[i].Values = append(tests[i].Values, v)
	}
	if keys, _ := c.reader.tables[p.Table].keys(""); keys != nil && len(keys) != len(tests) {
		return nil, BadKey
	}
	if !c.reader.setKey(p, tests) {
		return nil, BadKey
	}
	p.Projection = p.Projection || n.Has("ProjectionExpression") || n.Has("AttributesToGet")
	p.Consistent = p.Consistent || n.True("ConsistentRead")
	return tests, ""
}

// oneOf adds the key of one of several items to their pattern, and the item's own read.
func (c *call) oneOf(p *Pattern, n, key *wire.Node) Reason {
	own := Pattern{Kind: p.Kind, Operation: p.Operation, Table: p.Table}
	tests, reason := c.item(&own, n, key)
	if reason != "" {
		return reason
	}
	p.Key, p.Projection, p.Consistent = own.Key, p.Projection || own.Projection, p.Consistent || own.Consistent
	if t := c.reader.tables[p.Table]; t != nil && t.Program != nil {
		p.addRules(t.Program, own.Rules)
	}
	c.ask(own, tests)
	return ""
}

// count sets the pattern under which the reads from one on are counted, and what the request calls
// their table.
func (c *call) count(from int, p Pattern, named string) {
	for i := range c.asked[from:] {
		c.asked[from+i].Of, c.asked[from+i].Named = p, named
	}
}

// batchGet reads a BatchGetItem: a pattern for each table.
func (c *call) batchGet(n *wire.Node) Reason {
	tables := n.Get("RequestItems")
	if tables == nil || tables.Kind != wire.Object || len(tables.Kids) == 0 {
		return BadTable
	}
	for i := range tables.Kids {
		of := &tables.Kids[i]
		p, ok := c.pattern(Read, of.Name)
		if !ok {
			return BadTable
		}
		keys := of.Get("Keys")
		if keys == nil || len(keys.Kids) == 0 {
			return BadKey
		}
		from := len(c.asked)
		for k := range keys.Kids {
			if reason := c.oneOf(&p, of, &keys.Kids[k]); reason != "" {
				return reason
			}
		}
		c.count(from, p, of.Name)
		c.uses = append(c.uses, Use{Pattern: p, Keys: len(keys.Kids)})
	}
	return ""
}

// transactGet reads a TransactGetItems: a pattern for each table.
func (c *call) transactGet(n *wire.Node) Reason {
	gets := n.Get("TransactItems")
	if gets == nil || len(gets.Kids) == 0 {
		return BadKey
	}
	places := map[string]int{}
	for i := range gets.Kids {
		get := gets.Kids[i].Get("Get")
		if get == nil {
			return BadKey
		}
		p, ok := c.pattern(Read, get.Str("TableName"))
		if !ok {
			return BadTable
		}
		at, seen := places[p.Table]
		if !seen {
			at = len(c.uses)
			places[p.Table] = at
			c.uses = append(c.uses, Use{Pattern: p})
		}
		if reason := c.oneOf(&c.uses[at].Pattern, get, get.Get("Key")); reason != "" {
			return reason
		}
		c.uses[at].Keys++
	}
	for i := range c.asked {
		c.asked[i].Of = c.uses[places[c.asked[i].Pattern.Table]].Pattern
	}
	return ""
}

// listing returns the pattern of a Query or Scan without its key.
func (c *call) listing(kind Kind, n *wire.Node) (p Pattern, ok bool) {
	if p, ok = c.pattern(kind, n.Str("TableName")); !ok {
		return p, false
	}
	p.Index = n.Str("IndexName")
	p.Filter = n.Has("FilterExpression") || filters(n, "QueryFilter") || filters(n, "ScanFilter")
	p.Projection = n.Has("ProjectionExpression") || n.Has("AttributesToGet")
	p.Consistent = n.True("ConsistentRead")
	p.Count = n.Str("Select") == "COUNT"
	p.Limit = n.Has("Limit")
	p.Paginated = n.Has("ExclusiveStartKey")
	return p, !n.Has("IndexName") || isName(p.Index)
}

// filters reports whether a legacy filter has conditions.
func filters(n *wire.Node, name string) bool {
	f := n.Get(name)
	return f != nil && len(f.Kids) > 0
}

// scan reads a Scan.
func (c *call) scan(n *wire.Node) Reason {
	p, ok := c.listing(Scan, n)
	if !ok {
		return BadTable
	}
	p.Parallel = n.Has("TotalSegments")
	c.add(p)
	return ""
}

// query reads a Query, with a key condition of either style.
func (c *call) query(n *wire.Node) Reason {
	p, ok := c.listing(Read, n)
	if !ok {
		return BadTable
	}
	p.Backward = n.Str("ScanIndexForward") == "false"
	tests, reason := keyCondition(n)
	if reason != "" {
		return reason
	}
	if !c.reader.setKey(&p, tests) {
		return BadKey
	}
	c.add(p)
	c.ask(p, tests)
	return ""
}

// keyCondition reads KeyConditionExpression or the legacy KeyConditions.
func keyCondition(n *wire.Node) (tests []access.Test, reason Reason) {
	keys := map[string]*expr.KeyTest{}
	switch {
	case n.Has("KeyConditionExpression"):
		env, ok := environment(n)
		if !ok {
			return nil, BadExpression
		}
		parsed, err := env.KeyCondition(n.Str("KeyConditionExpression"))
		if err != nil {
			return nil, BadExpression
		}
		keys = parsed
	case n.Has("KeyConditions"):
		conditions := n.Get("KeyConditions")
		for i := range conditions.Kids {
			if list := conditions.Kids[i].Get("AttributeValueList"); list != nil && !checkValues(list) {
				return nil, BadExpression
			}
		}
		legacy, err := expr.LegacyTests(conditions)
		if err != nil {
			return nil, BadExpression
		}
		for i := range legacy {
			keys[legacy[i].Name] = legacy[i].KeyTest()
		}
	}
	return testsOf(keys)
}

// testsOf returns tests of keys with their values as mappings read them.
func testsOf(keys map[string]*expr.KeyTest) (tests []access.Test, reason Reason) {
	equal := false
	for name, k := range keys {
		t := access.Test{Attr: name, Op: k.Op}
		for _, v := range k.Values {
			out, ok := value(v)
			if !ok {
				return nil, BadExpression
			}
			t.Values = append(t.Values, out)
		}
		if want := operands[k.Op]; want == 0 || len(t.Values) != want {
			return nil, BadExpression
		}
		equal = equal || k.Op == access.Equal
		tests = append(tests, t)
	}
	if !equal {
		return nil, BadKey
	}
	return tests, ""
}

// operands is how many operands each operator of a key condition has.
var operands = map[string]int{access.Equal: 1, access.Less: 1, access.LessEqual: 1, access.More: 1,
	access.MoreEqual: 1, access.BeginsWith: 1, access.Between: 2}

// environment returns the placeholders of a request.
func environment(n *wire.Node) (*expr.Env, bool) {
	values := n.Get("ExpressionAttributeValues")
	if values != nil && attr.CheckMapShape(values) != nil {
		return nil, false
	}
	env, err := expr.NewEnv(n.Get("ExpressionAttributeNames"), values)
	return env, err == nil
}

// checkValues reports whether a list has values of valid JSON types.
func checkValues(list *wire.Node) bool {
	for i := range list.Kids {
		if attr.CheckShape(&list.Kids[i]) != nil {
			return false
		}
	}
	return true
}
