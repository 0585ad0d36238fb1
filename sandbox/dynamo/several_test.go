package dynamo_test

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// severalKeys returns the definitions and the key elements of attributes such as "a:HASH".
func severalKeys(attributes ...string) (defs, keys string) {
	var d, k []string
	for _, a := range attributes {
		name, kind, _ := strings.Cut(a, ":")
		def := `{'AttributeName':'` + name + `','AttributeType':'S'}`
		if !slices.Contains(d, def) {
			d = append(d, def)
		}
		k = append(k, `{'AttributeName':'`+name+`','KeyType':'`+kind+`'}`)
	}
	return strings.Join(d, ","), "[" + strings.Join(k, ",") + "]"
}

// withIndex returns a CreateTable of a table with key pk and a global index gsi.
func withIndex(table, projection string, attributes ...string) string {
	defs, keys := severalKeys(attributes...)
	return `{'TableName':'` + table + `','BillingMode':'PAY_PER_REQUEST',
		'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],
		'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},` + defs + `],
		'GlobalSecondaryIndexes':[{'IndexName':'gsi','Projection':{'ProjectionType':'` + projection + `'},
		'KeySchema':` + keys + `}]}`
}

// maxed are the attributes of the largest key: four of each type.
var maxed = []string{"h1:HASH", "h2:HASH", "h3:HASH", "h4:HASH", "r1:RANGE", "r2:RANGE", "r3:RANGE", "r4:RANGE"}

func TestKeysOfSeveralAttributesAreShownInTheirOrder(t *testing.T) {
	r := newRig(t)
	r.do("CreateTable", withIndex("ttt", "ALL", maxed...))
	_, keys := severalKeys(maxed...)
	var out struct {
		Table struct {
			GlobalSecondaryIndexes []struct{ KeySchema json.RawMessage }
		}
	}
	if err := json.Unmarshal([]byte(r.do("DescribeTable", `{'TableName':'ttt'}`)), &out); err != nil {
		t.Fatal(err)
	}
	r.want(string(out.Table.GlobalSecondaryIndexes[0].KeySchema), keys)
}

func TestKeysOfSeveralAttributesThatTheServiceRefuses(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	const invalid = "One or more parameter values were invalid: "
	three, keys := severalKeys("pk:HASH", "a:RANGE", "b:RANGE")
	var all []refusal
	for name, c := range map[string]struct {
		message    string
		attributes []string
	}{
		"five of the partition": {invalid + "The KeySchema exceeds the maximum allowed number of HASH key attributes",
			[]string{"a:HASH", "b:HASH", "c:HASH", "d:HASH", "e:HASH"}},
		"five of the sort key": {invalid + "The KeySchema exceeds the maximum allowed number of RANGE key attributes",
			[]string{"h:HASH", "a:RANGE", "b:RANGE", "c:RANGE", "d:RANGE", "e:RANGE"}},
		"mixed": {invalid + "All HASH key attributes must precede RANGE key attributes in the KeySchema",
			[]string{"a:HASH", "b:RANGE", "c:HASH"}},
		"one twice": {"The KeySchema contains multiple key attributes with the same name",
			[]string{"a:HASH", "b:HASH", "a:RANGE"}},
		"sort key first": {"Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
			[]string{"b:RANGE", "a:HASH"}},
	} {
		all = append(all, refusal{"create with " + name, "CreateTable", withIndex("new", "ALL", c.attributes...),
			"ValidationException", c.message, ackLab + "DDB-TABLE-123, DDB-TABLE-442"})
		defs, keys := severalKeys(c.attributes...)
		all = append(all, refusal{"update with " + name, "UpdateTable", `{'TableName':'ttt','AttributeDefinitions':[` + defs +
			`],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'gsi','Projection':{'ProjectionType':'ALL'},'KeySchema':` +
			keys + `}}]}`, "ValidationException", c.message, ackLab + "DDB-TABLE-123, DDB-TABLE-442"})
	}
	all = append(all, refusal{"of a local index", "CreateTable", `{'TableName':'new','BillingMode':'PAY_PER_REQUEST',
		'AttributeDefinitions':[` + three + `],'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},
		{'AttributeName':'a','KeyType':'RANGE'}],'LocalSecondaryIndexes':[{'IndexName':'lll',
		'Projection':{'ProjectionType':'ALL'},'KeySchema':` + keys + `}]}`, "ValidationException",
		"1 validation error detected: Value '[KeySchemaElement(attributeName=pk, keyType=HASH), " +
			"KeySchemaElement(attributeName=a, keyType=RANGE), KeySchemaElement(attributeName=b, keyType=RANGE)]' at " +
			"'localSecondaryIndexes.1.member.keySchema' failed to satisfy constraint: Member must have length less than " +
			"or equal to 2", ackLab + "DDB-TABLE-123"})
	r.refuses(t, all)
}

// ordered makes a table whose index has the partition key h and the sort keys a, b, c and d, and
// six items, of which p6 has no c. Source: paritysuite/dynamodb-conformance,
// tests/tier1/query/multiAttributeGsiKey.test.ts.
func ordered(r *rig) {
	r.do("CreateTable", withIndex("ttt", "KEYS_ONLY", "h:HASH", "a:RANGE", "b:RANGE", "c:RANGE", "d:RANGE"))
	for _, item := range []string{"p1 T live b r1", "p2 T live a r2", "p3 T live a r1", "p4 T draft c r1",
		"p5 F live a r0", "p6 T live - r1"} {
		f := strings.Fields(item)
		c := `'c':{'S':'` + f[3] + `'},`
		if f[3] == "-" {
			c = ""
		}
		r.put("ttt", `{'pk':{'S':'`+f[0]+`'},'h':{'S':'o1'},'a':{'S':'`+f[1]+`'},'b':{'S':'`+f[2]+`'},`+c+
			`'d':{'S':'`+f[4]+`'},'x':{'S':'more'}}`)
	}
}

// queried are values for key conditions on the index of ordered.
var queried = map[string]string{":h": "o1", ":a": "T", ":b": "live", ":c": "a", ":d": "r", ":x": "r1", ":y": "r1"}

// queryOf returns a Query of that index with some of these values.
func queryOf(condition, more string) string {
	var values []string
	for name, v := range queried {
		if strings.Contains(condition, name) {
			values = append(values, `'`+name+`':{'S':'`+v+`'}`)
		}
	}
	sort.Strings(values)
	return `{'TableName':'ttt','IndexName':'gsi','KeyConditionExpression':'` + condition + `',
		'ExpressionAttributeValues':{` + strings.Join(values, ",") + `}` + more + `}`
}

// keysOf returns pk of the items of a reply.
func keysOf(t *testing.T, body string) (keys []string) {
	t.Helper()
	var out struct {
		Items []struct{ PK struct{ S string } }
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	for _, item := range out.Items {
		keys = append(keys, item.PK.S)
	}
	return keys
}

// TestQueriesByKeysOfSeveralAttributes: source: paritysuite/dynamodb-conformance,
// tests/tier1/query/multiAttributeGsiKey.test.ts.
func TestQueriesByKeysOfSeveralAttributes(t *testing.T) {
	r := newRig(t)
	ordered(r)
	for condition, want := range map[string]string{
		"h = :h":                                  "p5 p4 p3 p2 p1",
		"h = :h AND a = :a":                       "p4 p3 p2 p1",
		"h = :h AND a = :a AND b = :b":            "p3 p2 p1",
		"h = :h AND a = :a AND b = :b AND c = :c": "p3 p2",
		"h = :h AND a = :a AND b = :b AND c > :c": "p1",
		"h = :h AND a = :a AND b = :b AND c = :c AND begins_with(d, :d)":  "p3 p2",
		"h = :h AND a = :a AND b = :b AND c = :c AND d BETWEEN :x AND :y": "p3",
		"h = :h AND a = :a AND b < :b":                                    "p4",
		"b = :b AND h = :h AND a = :a":                                    "p3 p2 p1",
	} {
		got := keysOf(t, r.do("Query", queryOf(condition, "")))
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", condition, diff)
		}
		slices.Reverse(got)
		if back := keysOf(t, r.do("Query", queryOf(condition, `,'ScanIndexForward':false`))); !slices.Equal(got, back) {
			t.Errorf("%s, backward: %v", condition, back)
		}
	}
	legacy := `{'TableName':'ttt','IndexName':'gsi','KeyConditions':{` + `'h':{'ComparisonOperator':'EQ',
		'AttributeValueList':[{'S':'o1'}]},'a':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'T'}]},
		'b':{'ComparisonOperator':'GT','AttributeValueList':[{'S':'a'}]}}}`
	if got := keysOf(t, r.do("Query", legacy)); !slices.Equal(got, []string{"p4", "p3", "p2", "p1"}) {
		t.Errorf("KeyConditions: %v", got) // getmoto/moto, tests/test_dynamodb/test_dynamodb_multi_attribute_gsi.py
	}
	r.want(r.do("Query", queryOf("h = :h AND a = :a", `,'Limit':1`)), `{'Count':1,'ScannedCount':1,
		'Items':[{'pk':{'S':'p4'},'h':{'S':'o1'},'a':{'S':'T'},'b':{'S':'draft'},'c':{'S':'c'},'d':{'S':'r1'}}],
		'LastEvaluatedKey':{'pk':{'S':'p4'},'h':{'S':'o1'},'a':{'S':'T'},'b':{'S':'draft'},'c':{'S':'c'},'d':{'S':'r1'}}}`)
	next := `,'ExclusiveStartKey':{'pk':{'S':'p4'},'h':{'S':'o1'},'a':{'S':'T'},'b':{'S':'draft'},'c':{'S':'c'},
		'd':{'S':'r1'}}`
	if got := keysOf(t, r.do("Query", queryOf("h = :h", next))); !slices.Equal(got, []string{"p3", "p2", "p1"}) {
		t.Errorf("after p4: %v", got)
	}
	got := r.do("Scan", `{'TableName':'ttt','IndexName':'gsi','Select':'COUNT'}`)
	if !strings.Contains(got, `"Count":5,`) {
		t.Errorf("scan of the index: %s", got)
	}
}

func TestConditionsOnSeveralAttributesThatTheServiceRefuses(t *testing.T) {
	r := newRig(t)
	ordered(r)
	const suite = "paritysuite/dynamodb-conformance, tests/tier1/query/multiAttributeGsiKey.test.ts"
	r.do("CreateTable", withIndex("two", "ALL", "h1:HASH", "h2:HASH", "r1:RANGE"))
	two := func(condition string) string {
		return strings.Replace(queryOf(condition, ""), "'ttt'", "'two'", 1)
	}
	ranged := func(missing, at string) string {
		return "RANGE key attributes " + missing + " must have equality conditions specified in the query because a " +
			"condition is present on key attribute " + at
	}
	// The suites have only parts of the message for the partition key: "HASH" and "equality".
	const hashed = " must have equality conditions specified in the query"
	r.refuses(t, []refusal{
		{"gap", "Query", queryOf("h = :h AND a = :a AND c = :c", ""), "ValidationException", ranged("b", "c"), suite},
		{"range before the last", "Query", queryOf("h = :h AND a = :a AND b > :b AND c = :c", ""), "ValidationException",
			ranged("b", "c"), suite},
		{"first skipped", "Query", queryOf("h = :h AND b = :b", ""), "ValidationException", ranged("a", "b"), suite},
		{"half of the partition", "Query", two("h1 = :h"), "ValidationException", "HASH key attributes h2" + hashed,
			scylla + "test_gsi_composite_keys.py: test_gsi_composite_query_missing_one_hk"},
		{"range in the partition", "Query", two("h1 = :h AND h2 > :a"), "ValidationException",
			"HASH key attributes h2" + hashed,
			scylla + "test_gsi_composite_keys.py: test_gsi_composite_query_hk_inequality"},
		{"condition on another attribute", "Query", two("h1 = :h AND h2 = :a AND pk = :h"), "ValidationException",
			"Query key condition not supported",
			scylla + "test_gsi.py: test_faux_range_key_in_keyconditionexpression"},
		{"filter on a key attribute", "Query", queryOf("h = :h", `,'FilterExpression':'d = :h'`), "ValidationException",
			"Filter Expression can only contain non-primary key attributes: Primary key attribute: d",
			scylla + "test_gsi_composite_keys.py: test_gsi_composite_filter_on_range_attr_rejected"},
		{"start without an attribute", "Query", queryOf("h = :h", `,'ExclusiveStartKey':{'pk':{'S':'p4'},'h':{'S':'o1'}}`),
			"ValidationException", "The provided starting key is invalid",
			scylla + "test_gsi_composite_keys.py: test_gsi_composite_exclusivestartkey_missing_column_rejected"},
	})
}
