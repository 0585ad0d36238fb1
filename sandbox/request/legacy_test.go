package request_test

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/sandbox/request"
)

// present is an item with one attribute of each kind that the tests compare.
const present = `{'n':{'N':'5'},'s':{'S':'five'},'ss':{'SS':['a','b']}}`

func TestExpectedConditionsHold(t *testing.T) {
	item := decode(t, present)
	for name, c := range map[string]struct {
		expected string
		want     bool
	}{
		"value":                {`'n':{'Value':{'N':'5.0'}}`, true},
		"other value":          {`'n':{'Value':{'N':'6'}}`, false},
		"value of a missing":   {`'x':{'Value':{'N':'5'}}`, false},
		"exists":               {`'n':{'Exists':true,'Value':{'N':'5'}}`, true},
		"does not exist":       {`'x':{'Exists':false}`, true},
		"does not exist, does": {`'n':{'Exists':false}`, false},
		"between":              {`'n':{'ComparisonOperator':'BETWEEN','AttributeValueList':[{'N':'5'},{'N':'10'}]}`, true},
		"less":                 {`'n':{'ComparisonOperator':'LT','AttributeValueList':[{'N':'10'}]}`, true},
		"one of":               {`'s':{'ComparisonOperator':'IN','AttributeValueList':[{'S':'one'},{'S':'five'}]}`, true},
		"begins with":          {`'s':{'ComparisonOperator':'BEGINS_WITH','AttributeValueList':[{'S':'fi'}]}`, true},
		"contains":             {`'ss':{'ComparisonOperator':'CONTAINS','AttributeValueList':[{'S':'b'}]}`, true},
		"contains not":         {`'ss':{'ComparisonOperator':'NOT_CONTAINS','AttributeValueList':[{'S':'b'}]}`, false},
		// NOT_CONTAINS wants the attribute to be there.
		"missing contains not": {`'x':{'ComparisonOperator':'NOT_CONTAINS','AttributeValueList':[{'S':'b'}]}`, false},
		"null":                 {`'x':{'ComparisonOperator':'NULL'}`, true},
		"not null":             {`'n':{'ComparisonOperator':'NOT_NULL'}`, true},
		"old form of a test":   {`'n':{'ComparisonOperator':'EQ','Value':{'N':'5'}}`, true},
		"both":                 {`'n':{'Value':{'N':'5'}},'x':{'Exists':false}`, true},
		"one of two":           {`'n':{'Value':{'N':'6'}},'x':{'Exists':false}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			condition, err := request.Expected(parse(t, `{'Expected':{`+c.expected+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := condition.Match(item); got != c.want {
				t.Errorf("holds: %v, want %v", got, c.want)
			}
		})
	}
	either, err := request.Expected(parse(t,
		`{'ConditionalOperator':'OR','Expected':{'n':{'Value':{'N':'6'}},'x':{'Exists':false}}}`))
	if err != nil || !either.Match(item) {
		t.Errorf("either of two: %v", err)
	}
	if none, err := request.Expected(parse(t, `{}`)); none != nil || err != nil {
		t.Errorf("no Expected: %v, %v", none, err)
	}
}

func TestMalformedExpectedConditionsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ expected, want string }{
		"both values": {`'a':{'Value':{'N':'1'},'AttributeValueList':[{'N':'1'}]}`,
			"Value and AttributeValueList cannot be used together for Attribute: a"},
		"list without operator": {`'a':{'AttributeValueList':[{'N':'1'}]}`,
			"AttributeValueList can only be used with a ComparisonOperator for Attribute: a"},
		"operator with exists": {`'a':{'ComparisonOperator':'EQ','Exists':true,'Value':{'N':'1'}}`,
			"Exists and ComparisonOperator cannot be used together for Attribute: a"},
		"operator without value": {`'a':{'ComparisonOperator':'EQ'}`,
			"Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a"},
		"nothing":              {`'a':{}`, "Value must be provided when Exists is null for Attribute: a"},
		"exists without value": {`'a':{'Exists':true}`, "Value must be provided when Exists is true for Attribute: a"},
		"absent with a value": {`'a':{'Exists':false,'Value':{'N':'1'}}`,
			"Value cannot be used when Exists is false for Attribute: a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := request.Expected(parse(t, `{'Expected':{`+c.expected+`}}`))
			wantMessage(t, err, badValue+c.want)
		})
	}
}

func TestLegacyTestsCheckTheirOperands(t *testing.T) {
	operands := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{'N':'1'},`, n), ",") }
	for name, c := range map[string]struct{ op, values, want string }{
		"equal":         {"EQ", `{'SS':['a']}`, ""},
		"equal to none": {"EQ", ``, badValue + "Invalid number of argument(s) for the EQ ComparisonOperator"},
		"equal to two": {"EQ", `{'N':'1'},{'N':'1'}`, badValue +
			"Invalid number of argument(s) for the EQ ComparisonOperator"},
		"null":        {"NULL", ``, ""},
		"null of one": {"NULL", `{'N':'1'}`, badValue + "Invalid number of argument(s) for the NULL ComparisonOperator"},
		"between one": {"BETWEEN", `{'N':'1'}`,
			badValue + "Invalid number of argument(s) for the BETWEEN ComparisonOperator"},
		"between types": {"BETWEEN", `{'N':'1'},{'S':'2'}`, badValue +
			"AttributeValues inside AttributeValueList must be of same type"},
		"between, backwards": {"BETWEEN", `{'N':'10'},{'N':'9'}`,
			"The BETWEEN condition was provided a range where the lower bound " +
				"is greater than the upper bound"},
		"in 100":        {"IN", operands(100), ""},
		"in 101":        {"IN", operands(101), badValue + "Invalid number of argument(s) for the IN ComparisonOperator"},
		"less than set": {"LT", `{'SS':['a']}`, badValue + "ComparisonOperator LT is not valid for SS AttributeValue type"},
		"begins with N": {"BEGINS_WITH", `{'N':'1'}`, badValue +
			"ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type"},
		"contains a map": {"CONTAINS", `{'M':{}}`,
			badValue + "ComparisonOperator CONTAINS is not valid for M AttributeValue type"},
		"not a value": {"EQ", `{}`,
			"Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
	} {
		t.Run(name, func(t *testing.T) {
			tests, err := expr.LegacyTests(parse(t,
				`{'a':{'ComparisonOperator':'`+c.op+`','AttributeValueList':[`+c.values+`]}}`))
			wantMessage(t, err, c.want)
			if c.want == "" && (len(tests) != 1 || tests[0].Name != "a" || tests[0].Op != c.op) {
				t.Errorf("tests %+v", tests)
			}
		})
	}
	if tests, err := expr.LegacyTests(nil); tests != nil || err != nil {
		t.Errorf("no filter: %v, %v", tests, err)
	}
}

func TestAttributeUpdatesAreApplied(t *testing.T) {
	for name, c := range map[string]struct{ updates, want string }{
		"put": {`'n':{'Action':'PUT','Value':{'N':'6'}}`,
			`{'n':{'N':'6'},'s':{'S':'five'},'ss':{'SS':['a','b']}}`},
		"put by default": {`'x':{'Value':{'S':''}}`,
			`{'n':{'N':'5'},'s':{'S':'five'},'ss':{'SS':['a','b']},'x':{'S':''}}`},
		"add a number": {`'n':{'Action':'ADD','Value':{'N':'-7'}}`,
			`{'n':{'N':'-2'},'s':{'S':'five'},'ss':{'SS':['a','b']}}`},
		"add to a set": {`'ss':{'Action':'ADD','Value':{'SS':['b','c']}}`,
			`{'n':{'N':'5'},'s':{'S':'five'},'ss':{'SS':['a','b','c']}}`},
		"delete": {`'s':{'Action':'DELETE'},'ss':{'Action':'DELETE'}`, `{'n':{'N':'5'}}`},
		"delete from a set": {`'ss':{'Action':'DELETE','Value':{'SS':['a']}}`,
			`{'n':{'N':'5'},'s':{'S':'five'},'ss':{'SS':['b']}}`},
		"delete a whole set": {`'ss':{'Action':'DELETE','Value':{'SS':['b','a']}},'s':{'Action':'DELETE'}`,
			`{'n':{'N':'5'}}`},
	} {
		t.Run(name, func(t *testing.T) {
			update, err := request.AttributeUpdates(parse(t, `{'AttributeUpdates':{`+c.updates+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			item := decode(t, present)
			if err := update.Apply(&item); err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(string(item.AppendJSON(nil)), `"`, "'"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestMalformedAttributeUpdatesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ updates, want string }{
		"put nothing": {`'a':{'Action':'PUT'}`,
			"Only DELETE action is allowed when no attribute value is specified"},
		"delete from a number": {`'a':{'Action':'DELETE','Value':{'N':'1'}}`,
			"DELETE action with value is not supported for the type N"},
		"add text": {`'a':{'Action':'ADD','Value':{'S':'1'}}`, "ADD action is not supported for the type S"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := request.AttributeUpdates(parse(t, `{'AttributeUpdates':{`+c.updates+`}}`))
			wantMessage(t, err, badValue+c.want)
		})
	}
	update, err := request.AttributeUpdates(parse(t, `{'AttributeUpdates':{'n':{'Action':'ADD','Value':{'SS':['a']}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	item := decode(t, present)
	wantMessage(t, update.Apply(&item), "Type mismatch for attribute to update")
	if none, err := request.AttributeUpdates(parse(t, `{}`)); none != nil || err != nil {
		t.Errorf("no updates: %v, %v", none, err)
	}
	if item.Get("n").Kind != attr.N {
		t.Error("a refused update changed the item")
	}
}
