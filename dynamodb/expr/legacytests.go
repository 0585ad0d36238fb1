package expr

import (
	"slices"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// LegacyValues reads an AttributeValueList.
func LegacyValues(n *wire.Node) ([]attr.Value, *wire.Error) {
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

// Check checks the number and the types of the operands.
func (t *LegacyTest) Check() *wire.Error {
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
func LegacyTests(f *wire.Node) ([]LegacyTest, *wire.Error) {
	if f == nil {
		return nil, nil
	}
	var tests []LegacyTest
	for i := range f.Kids {
		t := LegacyTest{Name: f.Kids[i].Name, Op: f.Kids[i].Str("ComparisonOperator")}
		err := attr.CheckName(t.Name)
		if err != nil {
			return nil, err
		}
		if t.Values, err = LegacyValues(&f.Kids[i]); err != nil {
			return nil, err
		}
		if err := t.Check(); err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	return tests, nil
}
