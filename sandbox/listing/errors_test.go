package listing_test

import (
	"fmt"
	"testing"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// Beginnings of the service's messages.
const (
	badValue  = "One or more parameter values were invalid: "
	wrongType = badValue + "Condition parameter type does not match schema type"
	badStart  = "The provided starting key is invalid"
)

// wantRefusal compares an answer with the ValidationException that is wanted.
func wantRefusal(t *testing.T, want string) func(*page, *wire.Error) {
	return func(_ *page, err *wire.Error) {
		t.Helper()
		switch {
		case err == nil:
			t.Error("not refused")
		case err.Code != "ValidationException" || err.Message != want:
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestMalformedQueriesAreRefused(t *testing.T) {
	tb := newTable(t, numbered("a", 3)...)
	key := func(condition, values string) string {
		return "'KeyConditionExpression':'" + condition + "','ExpressionAttributeValues':{" + values + "}"
	}
	const p = "':p':{'S':'a'}"
	start := func(key string) string { return ofA + ",'ExclusiveStartKey':{" + key + "}" }
	for name, c := range map[string]struct{ fields, want string }{
		"no condition": {"",
			"Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
		"no partition key":   {key("c = :c", "':c':{'N':'1'}"), "Query condition missed key schema element: p"},
		"partition below":    {key("p < :p", p), "Query key condition not supported"},
		"other attribute":    {key("p = :p AND x = :p", p), "Query condition missed key schema element: c"},
		"three conditions":   {key("p = :p AND c = :p AND x = :p", p), "Conditions can be of length 1 or 2 only"},
		"wrong type":         {key("p = :p", "':p':{'N':'1'}"), wrongType},
		"begins with number": {key("p = :p AND begins_with(c, :p)", p), wrongType},
		"empty key": {key("p = :p", "':p':{'S':''}"), "One or more parameter values are not valid. " +
			"The AttributeValue for a key attribute cannot contain an empty string value. Key: p"},
		"filter on the key": {ofA + ",'FilterExpression':'c = :p'",
			"Filter Expression can only contain non-primary key attributes: Primary key attribute: c"},
		"both styles": {ofA + ",'AttributesToGet':['x']", "Can not use both expression and non-expression parameters " +
			"in the same request: Non-expression parameters: {AttributesToGet} Expression parameters: {KeyConditionExpression}"},
		"limit 0": {ofA + ",'Limit':0", "1 validation error detected: Value at 'Limit' failed to satisfy constraint: " +
			"Member must have value greater than or equal to 1"},
		"start without sort key": {start("'p':{'S':'a'}"), badStart},
		"start with more":        {start("'p':{'S':'a'},'c':{'N':'1'},'x':{'N':'1'}"), badStart},
		"start elsewhere": {start("'p':{'S':'b'},'c':{'N':'1'}"),
			"The provided starting key is outside query boundaries based on provided conditions"},
		"start past the condition": {sortCondition("c < :c", "':c':{'N':'2'}") + ",'ExclusiveStartKey':" + item("a", 3, ""),
			"The provided starting key does not match the range key predicate"},
		"start of a wrong type": {start("'p':{'S':'a'},'c':{'S':'1'}"), "The provided key element does not match the schema"},
		"start is not a value": {start("'p':{'S':'a'},'c':{}"), badStart + ": Supplied AttributeValue is empty, " +
			"must contain exactly one of the supported datatypes"},
	} {
		t.Run(name, func(t *testing.T) { wantRefusal(t, c.want)(ask(t, tb, "Query", c.fields)) })
	}
}

func TestMalformedScansAreRefused(t *testing.T) {
	tb := newTable(t, numbered("a", 3)...)
	for name, c := range map[string]struct{ fields, want string }{
		"segment alone": {"'Segment':0", "The TotalSegments parameter is required but was not present in the request " +
			"when Segment parameter is present"},
		"total alone": {"'TotalSegments':2", "The Segment parameter is required but was not present in the request " +
			"when parameter TotalSegments is present"},
		"segment too large": {"'Segment':2,'TotalSegments':2", "The Segment parameter is zero-based and must be less than " +
			"parameter TotalSegments: Segment: 2 is not less than TotalSegments: 2"},
		"too many segments": {"'Segment':0,'TotalSegments':1000001", "1 validation error detected: Value '1000001' at " +
			"'totalSegments' failed to satisfy constraint: Member must have value less than or equal to 1000000"},
		"start of a wrong type": {"'ExclusiveStartKey':{'p':{'S':'a'},'c':{'S':'1'}}",
			badStart + ": The provided key element does not match the schema"},
		"start without sort key": {"'ExclusiveStartKey':{'p':{'S':'a'}}",
			badStart + ": The provided key element does not match the schema"},
		"unused value": {"'FilterExpression':'attribute_exists(x)','ExpressionAttributeValues':{':p':{'S':'a'}}",
			"Value provided in ExpressionAttributeValues unused in expressions: keys: {:p}"},
		"values without expression": {"'ExpressionAttributeValues':{':p':{'S':'a'}}",
			"ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null"},
	} {
		t.Run(name, func(t *testing.T) { wantRefusal(t, c.want)(ask(t, tb, "Scan", c.fields)) })
	}
}

// TestStartKeyOfAnotherSegmentIsRefused: of two segments one has an item, and the other refuses to
// start there.
func TestStartKeyOfAnotherSegmentIsRefused(t *testing.T) {
	tb := newTable(t)
	refused := map[string]int{}
	for p := range 10 {
		for _, segment := range []string{"0", "1"} {
			start := ",'ExclusiveStartKey':" + item(fmt.Sprint(p), 1, "")
			if _, err := ask(t, tb, "Scan", "'TotalSegments':2,'Segment':"+segment+start); err != nil {
				refused[segment]++
				wantRefusal(t, badStart+": Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct "+
					"Segment. TotalSegments: 2 Segment: "+segment)(nil, err)
			}
		}
	}
	if refused["0"]+refused["1"] != 10 || refused["0"] == 0 || refused["1"] == 0 {
		t.Errorf("of ten keys, one half each: %v were refused", refused)
	}
}

func TestSelectAndIndexCombinationsAreChecked(t *testing.T) {
	tb := newTable(t, indexedItems...)
	for name, c := range map[string]struct{ fields, want string }{
		"count with projection": {ofA + ",'Select':'COUNT','ProjectionExpression':'x'",
			"Cannot specify the ProjectionExpression when choosing to get only the Count"},
		"all with projection": {ofA + ",'Select':'ALL_ATTRIBUTES','ProjectionExpression':'x'",
			"Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES"},
		"specific without any": {ofA + ",'Select':'SPECIFIC_ATTRIBUTES'", "Must specify the AttributesToGet or " +
			"ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},
		"projected of a table": {ofA + ",'Select':'ALL_PROJECTED_ATTRIBUTES'",
			badValue + "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"},
		"unknown select": {ofA + ",'Select':'SOME'", "1 validation error detected: Value 'SOME' at 'select' failed to " +
			"satisfy constraint: Member must satisfy enum value set: " +
			"[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]"},
		"unknown index": {ofA + ",'IndexName':'byX'", "The table does not have the specified index: byX"},
		"consistent global index": {ofY + ",'ConsistentRead':true",
			"Consistent reads are not supported on global secondary indexes"},
		"all of a global index": {ofY + ",'Select':'ALL_ATTRIBUTES'", badValue + "Select type ALL_ATTRIBUTES is not " +
			"supported for global secondary index byG because its projection type is not ALL"},
		"attribute that the index lacks": {ofY + ",'ProjectionExpression':'x, g, z'",
			badValue + "Global secondary index byG does not project [x, z]"},
		// sensedeep/dynamodb-onetable, issue 377; nubo-db/dynoxide,
		// tests/partiql_index_qualifier.rs
		"filter of what a global index lacks": {ofY + ",'FilterExpression':'attribute_exists(z) OR x = g OR l = x'",
			badValue + "Secondary index byG does not project one or more filter attributes: [l, x, z]"},
		"filter of what a local index lacks": {"'IndexName':'byL','FilterExpression':'attribute_exists(z)'," + ofA,
			badValue + "Secondary index byL does not project one or more filter attributes: [z]"},
		"older filter of what an index lacks": {"'IndexName':'byG','KeyConditions':{'g':{'ComparisonOperator':'EQ'," +
			"'AttributeValueList':[{'S':'y'}]}},'QueryFilter':{'x':{'ComparisonOperator':'NULL'}}",
			badValue + "Secondary index byG does not project one or more filter attributes: [x]"},
		"start key without the index's": {ofY + ",'ExclusiveStartKey':{'p':{'S':'a'},'c':{'N':'1'}}",
			badStart},
	} {
		t.Run(name, func(t *testing.T) { wantRefusal(t, c.want)(ask(t, tb, "Query", c.fields)) })
	}
}
