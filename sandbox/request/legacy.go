package request

import (
	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// The legacy parameters, which expressions have replaced, are translated into parsed expressions
// here; package expr reads what they have in common.

// Expected returns the condition of a write's legacy parameter Expected, nil when there is none.
func Expected(n *wire.Node) (*expr.Condition, *wire.Error) {
	f := n.Get("Expected")
	if f == nil {
		return nil, nil
	}
	var tests []expr.LegacyTest
	for i := range f.Kids {
		t, err := readExpectation(&f.Kids[i])
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	return expr.LegacyCondition(tests, n.Str("ConditionalOperator") == "OR"), nil
}

// readExpectation reads one attribute's condition.
func readExpectation(e *wire.Node) (t expr.LegacyTest, err *wire.Error) {
	t = expr.LegacyTest{Name: e.Name, Op: e.Str("ComparisonOperator")}
	if err := attr.CheckName(e.Name); err != nil {
		return t, err
	}
	hasList, hasValue := e.Has("AttributeValueList"), e.Has("Value")
	if hasList && hasValue {
		return t, wire.BadValue("Value and AttributeValueList cannot be used together for Attribute: %s", e.Name)
	}
	if t.Values, err = expr.LegacyValues(e); err != nil {
		return t, err
	}
	if hasValue {
		v, err := attr.Decode(e.Get("Value"))
		if err != nil {
			return t, err
		}
		t.Values = []attr.Value{v}
	}
	if t.Op != "" {
		return t, checkExpectation(e, &t, hasList || hasValue)
	}
	if hasList {
		return t, wire.BadValue("AttributeValueList can only be used with a ComparisonOperator for Attribute: %s", e.Name)
	}
	return expectExists(e, t, hasValue)
}

// checkExpectation checks a condition with a ComparisonOperator.
func checkExpectation(e *wire.Node, t *expr.LegacyTest, hasAny bool) *wire.Error {
	switch {
	case e.Has("Exists"):
		return wire.BadValue("Exists and ComparisonOperator cannot be used together for Attribute: %s", e.Name)
	case t.Op != "NULL" && t.Op != "NOT_NULL" && !hasAny:
		return wire.BadValue("Value or AttributeValueList must be used with ComparisonOperator: %s for Attribute: %s",
			t.Op, e.Name)
	}
	return t.Check()
}

// expectExists reads a condition without a ComparisonOperator: a value, or that the attribute is
// missing.
func expectExists(e *wire.Node, t expr.LegacyTest, hasValue bool) (expr.LegacyTest, *wire.Error) {
	exists := !e.Has("Exists") || e.True("Exists")
	switch {
	case exists && !hasValue:
		shown := "null"
		if e.Has("Exists") {
			shown = "true"
		}
		return t, wire.BadValue("Value must be provided when Exists is %s for Attribute: %s", shown, e.Name)
	case !exists && hasValue:
		return t, wire.BadValue("Value cannot be used when Exists is false for Attribute: %s", e.Name)
	case exists:
		t.Op = "EQ"
	default:
		t.Op = "NULL"
	}
	return t, nil
}

// AttributeUpdates returns the update of the legacy parameter AttributeUpdates, nil when there is
// none.
func AttributeUpdates(n *wire.Node) (*expr.Update, *wire.Error) {
	f := n.Get("AttributeUpdates")
	if f == nil {
		return nil, nil
	}
	var all []expr.LegacyUpdate
	for i := range f.Kids {
		k := &f.Kids[i]
		if err := attr.CheckName(k.Name); err != nil {
			return nil, err
		}
		u := expr.LegacyUpdate{Name: k.Name, Action: k.Str("Action")}
		if k.Has("Value") {
			v, err := attr.Decode(k.Get("Value"))
			if err != nil {
				return nil, err
			}
			u.Value = &v
		}
		if err := checkAttributeUpdate(&u); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return expr.LegacyUpdates(all), nil
}

// checkAttributeUpdate checks an action against the type of its value.
func checkAttributeUpdate(u *expr.LegacyUpdate) *wire.Error {
	switch {
	case u.Value == nil && u.Action != "DELETE":
		return wire.BadValue("Only DELETE action is allowed when no attribute value is specified")
	case u.Value == nil:
	case u.Action == "DELETE" && !u.Value.IsSet():
		return wire.BadValue("DELETE action with value is not supported for the type %s", u.Value.Kind)
	case u.Action == "ADD" && !u.Value.IsSet() && u.Value.Kind != attr.N && u.Value.Kind != attr.L:
		return wire.BadValue("ADD action is not supported for the type %s", u.Value.Kind)
	}
	return nil
}
