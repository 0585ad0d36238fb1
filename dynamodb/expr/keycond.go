package expr

import (
	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// KeyTest is the condition on one key attribute. Op is "=", "<", "<=", ">", ">=", "BETWEEN" or
// "begins_with".
type KeyTest struct {
	Op     string
	Values []*attr.Value
}

// Match applies the test to a key's value.
func (k *KeyTest) Match(v *attr.Value) bool {
	if k.Op == "BETWEEN" {
		return compare(">=", v, k.Values[0]) && compare("<=", v, k.Values[1])
	}
	return compare(k.Op, v, k.Values[0])
}

// KeyCondition parses a key condition expression into one test per key attribute.
func (e *Env) KeyCondition(src string) (map[string]*KeyTest, *wire.Error) {
	c, err := e.Condition("KeyConditionExpression", src)
	if err != nil {
		return nil, err
	}
	tests := map[string]*KeyTest{}
	return tests, keyTests(c.root, tests)
}

// keyTests adds the tests of a condition, which may join several by AND alone.
func keyTests(n *node, tests map[string]*KeyTest) *wire.Error {
	switch n.op {
	case "OR", "NOT", "IN", "<>", "attribute_exists", "attribute_not_exists", "attribute_type", "contains":
		return wire.Invalid("Invalid operator used in KeyConditionExpression: %s", n.op)
	case "AND":
		for _, a := range n.args {
			if err := keyTests(a, tests); err != nil {
				return err
			}
		}
		return nil
	case "BETWEEN", "begins_with":
		if n.args[0].op != "path" {
			return wire.Invalid("Invalid condition in KeyConditionExpression: %s operator must have the key attribute as its "+
				"first operand", n.op)
		}
	}
	return keyTest(n, tests)
}

// mirrored are the comparators with their operands exchanged.
var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}

// keyTest adds the test of one comparison.
func keyTest(n *node, tests map[string]*KeyTest) *wire.Error {
	test := &KeyTest{Op: n.op}
	name, at := "", 0
	for i, a := range n.args {
		switch {
		case a.isCall:
			return wire.Invalid("KeyConditionExpressions cannot contain nested operations")
		case a.op == "value":
			test.Values = append(test.Values, a.value)
		case name != "":
			return wire.Invalid("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
		case len(a.path) > 1:
			return wire.Invalid("KeyConditionExpressions cannot have conditions on nested attributes")
		default:
			name, at = a.path[0].Name, i
		}
	}
	switch {
	case name == "":
		return wire.Invalid("Invalid condition in KeyConditionExpression: No key attribute specified")
	case tests[name] != nil:
		return wire.Invalid("KeyConditionExpressions must only contain one condition per key")
	}
	if at > 0 && mirrored[test.Op] != "" {
		test.Op = mirrored[test.Op]
	}
	tests[name] = test
	return nil
}
