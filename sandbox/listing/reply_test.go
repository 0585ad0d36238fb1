package listing_test

import (
	"strings"
	"testing"
)

func TestCountsAndProjections(t *testing.T) {
	tb := newTable(t,
		item("a", 1, "'x':{'M':{'y':{'L':[{'N':'1'},{'N':'2'}]}}},"), item("a", 2, "'x':{'S':'two'},"), item("a", 3, ""))
	const withX = "'KeyConditionExpression':'p = :p','FilterExpression':'attribute_exists(x)'," +
		"'ExpressionAttributeValues':{':p':{'S':'a'}}"
	for name, c := range map[string]struct {
		op, fields     string
		count, scanned int
		first          string // "" when the reply has no items
	}{
		"all":           {"Query", ofA, 3, 3, "{'c':{'N':'1'},'p':{'S':'a'},'x':{'M':{'y':{'L':[{'N':'1'},{'N':'2'}]}}}}"},
		"filter":        {"Query", withX, 2, 3, "{'c':{'N':'1'},'p':{'S':'a'},'x':{'M':{'y':{'L':[{'N':'1'},{'N':'2'}]}}}}"},
		"count":         {"Query", withX + ",'Select':'COUNT'", 2, 3, ""},
		"nested path":   {"Query", ofA + ",'ProjectionExpression':'x.y[1]'", 3, 3, "{'x':{'M':{'y':{'L':[{'N':'2'}]}}}}"},
		"legacy":        {"Scan", "'AttributesToGet':['c','nothing']", 3, 3, "{'c':{'N':'1'}}"},
		"legacy filter": {"Scan", "'ScanFilter':{'x':{'ComparisonOperator':'NULL'}}", 1, 3, "{'c':{'N':'3'},'p':{'S':'a'}}"},
		"legacy either": {"Scan", "'ConditionalOperator':'OR','ScanFilter':{'x':{'ComparisonOperator':'NULL'}," +
			"'c':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'1'}]}},'Select':'COUNT'", 2, 3, ""},
		"empty partition": {"Query", strings.Replace(ofA, "'S':'a'", "'S':'nobody'", 1), 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustAsk(t, tb, c.op, c.fields)
			if p.Count != c.count || p.ScannedCount != c.scanned {
				t.Errorf("count %d of %d, want %d of %d", p.Count, p.ScannedCount, c.count, c.scanned)
			}
			first := ""
			if len(p.Items) > 0 {
				first = strings.ReplaceAll(string(p.Items[0]), `"`, "'")
			}
			if first != c.first {
				t.Errorf("first item %s\nwant       %s", first, c.first)
			}
		})
	}
}

// TestReadCapacityIsOfAllThatWasEvaluated: units of 4 KB, of the page as a whole and before
// filters; half of them for eventually consistent reads. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
func TestReadCapacityIsOfAllThatWasEvaluated(t *testing.T) {
	body := "'x':{'S':'" + strings.Repeat("x", 3000) + "'},"
	tb := newTable(t, item("a", 1, body), item("a", 2, body), item("a", 3, body)) // 9 KB and some
	for fields, want := range map[string]float64{
		ofA:                                      0, // not asked for
		ofA + ",'ReturnConsumedCapacity':'NONE'": 0,
		ofA + ",'ReturnConsumedCapacity':'TOTAL'":                                                1.5,
		ofA + ",'ReturnConsumedCapacity':'INDEXES','ConsistentRead':true":                        3,
		ofA + ",'ReturnConsumedCapacity':'TOTAL','Limit':1":                                      0.5,
		ofA + ",'ReturnConsumedCapacity':'TOTAL','Select':'COUNT'":                               1.5,
		ofA + ",'ReturnConsumedCapacity':'TOTAL','FilterExpression':'attribute_not_exists(x)'":   1.5,
		strings.Replace(ofA, "'S':'a'", "'S':'nobody'", 1) + ",'ReturnConsumedCapacity':'TOTAL'": 0.5,
	} {
		if got := mustAsk(t, tb, "Query", fields).ConsumedCapacity.CapacityUnits; got != want {
			t.Errorf("%s: %v units, want %v", fields, got, want)
		}
	}
}
