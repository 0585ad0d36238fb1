package request

import (
	"slices"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// The legacy parameters, which expressions have replaced, are translated into parsed expressions
// here.

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
	if t.Values, err = legacyValues(e); err != nil {
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
	return checkLegacy(t)
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

// legacyValues reads an AttributeValueList.
func legacyValues(n *wire.Node) ([]attr.Value, *wire.Error) {
	list := n.Get("AttributeValueList")
	if list == nil {
		return nil, nil
	}
	out := make([]attr.Value, len(list.Kids))
	for i := range list.Kids {
		var err *wire.Error
		if out[i], err = attr.Decode(&list.Kids[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// legacyTypes are the types of operands that a comparison takes. A comparison that is not listed
// takes any.
var legacyTypes = map[string][]attr.Kind{
	"LE": scalars, "LT": scalars, "GE": scalars, "GT": scalars, "BETWEEN": scalars, "IN": scalars,
	"CONTAINS": scalars, "NOT_CONTAINS": scalars, "BEGINS_WITH": {attr.S, attr.B},
}

var scalars = []attr.Kind{attr.S, attr.N, attr.B}

// checkLegacy checks the number and the types of a test's operands.
func checkLegacy(t *expr.LegacyTest) *wire.Error {
	least, most := 1, 1
	switch t.Op {
	case "NULL", "NOT_NULL":
		least, most = 0, 0
	case "BETWEEN":
		least, most = 2, 2
	case "IN":
		most = 100
	}
	if len(t.Values) < least || len(t.Values) > most {
		return wire.BadValue("Invalid number of argument(s) for the %s ComparisonOperator", t.Op)
	}
	for i := range t.Values {
		if t.Values[i].Kind != t.Values[0].Kind {
			return wire.BadValue("AttributeValues inside AttributeValueList must be of same type")
		}
		if types := legacyTypes[t.Op]; types != nil && !slices.Contains(types, t.Values[i].Kind) {
			return wire.BadValue("ComparisonOperator %s is not valid for %s AttributeValue type", t.Op, t.Values[i].Kind)
		}
	}
	if t.Op == "BETWEEN" {
		if order, ok := t.Values[0].Compare(&t.Values[1]); ok && order > 0 {
			return wire.Invalid("The BETWEEN condition was provided a range where the lower bound is greater than the upper " +
				"bound")
		}
	}
	return nil
}

// LegacyTests reads the tests of a ScanFilter, QueryFilter or KeyConditions; f may be nil.
func LegacyTests(f *wire.Node) ([]expr.LegacyTest, *wire.Error) {
	if f == nil {
		return nil, nil
	}
	var tests []expr.LegacyTest
	for i := range f.Kids {
		t := expr.LegacyTest{Name: f.Kids[i].Name, Op: f.Kids[i].Str("ComparisonOperator")}
		err := attr.CheckName(t.Name)
		if err != nil {
			return nil, err
		}
		if t.Values, err = legacyValues(&f.Kids[i]); err != nil {
			return nil, err
		}
		if err := checkLegacy(&t); err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	return tests, nil
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
