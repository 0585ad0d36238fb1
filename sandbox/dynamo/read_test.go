package dynamo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestBatchGetEndsBeforeSixteenMegabytes reads 60 items of 300,004 bytes, of which 55 fit into 16
// MB. Source: getmoto/moto, tests/test_dynamodb/test_dynamodb_batch_get_item.py, and
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html.
func TestBatchGetEndsBeforeSixteenMegabytes(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	var keys []string
	for i := range 60 {
		item := fmt.Sprintf(`{"p":{"S":"%02d"},"x":{"S":"%s"}}`, i, strings.Repeat("x", 300000))
		if err := r.Put("ttt", []byte(item)); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, fmt.Sprintf(`{'p':{'S':'%02d'}}`, i))
	}
	var out struct {
		Responses        map[string][]json.RawMessage
		UnprocessedKeys  map[string]struct{ Keys []json.RawMessage }
		ConsumedCapacity []struct{ CapacityUnits float64 }
	}
	body := r.do("BatchGetItem", `{'ReturnConsumedCapacity':'TOTAL','RequestItems':{'ttt':{'ConsistentRead':true,'Keys':[`+
		strings.Join(keys, ",")+`]}}}`)
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	if got, left := len(out.Responses["ttt"]), len(out.UnprocessedKeys["ttt"].Keys); got != 55 || left != 5 {
		t.Errorf("%d items and %d keys, want 55 and 5", got, left)
	}
	if got := out.ConsumedCapacity[0].CapacityUnits; got != 55*74 {
		t.Errorf("%v units, want those of 55 items", got)
	}
}

// TestBatchGetLeavesWhatIsBehind: a full reply takes nothing more, however small, of any table, and
// what is left can be sent as it is. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html: "the
// UnprocessedKeys value is in the same form as RequestItems".
func TestBatchGetLeavesWhatIsBehind(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"aaa", "bbb", "ccc"} {
		r.table(name, "")
		for i := range 60 {
			size := 300000
			if i == 59 {
				size = 1
			}
			item := fmt.Sprintf(`{"p":{"S":"%02d"},"x":{"S":"%s"},"y":{"S":"y"}}`, i, strings.Repeat("x", size))
			if err := r.Put(name, []byte(item)); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys := func(first, end int) string {
		var all []string
		for i := first; i < end; i++ {
			all = append(all, fmt.Sprintf(`{'p':{'S':'%02d'}}`, i))
		}
		return `'Keys':[` + strings.Join(all, ",") + `]`
	}
	read := func(requests string) (counts []int, left json.RawMessage) {
		var out struct {
			Responses       map[string][]json.RawMessage
			UnprocessedKeys json.RawMessage
		}
		r.decode(r.do("BatchGetItem", `{'RequestItems':`+requests+`}`), &out)
		for _, name := range []string{"aaa", "bbb", "ccc"} {
			counts = append(counts, len(out.Responses[name]))
		}
		return counts, out.UnprocessedKeys
	}
	const named = `'ProjectionExpression':'#y,p','ExpressionAttributeNames':{'#y':'y'},'ConsistentRead':true,`
	counts, left := read(`{'aaa':{` + keys(0, 30) + `},'bbb':{` + named + keys(0, 26) + `},'ccc':{
		'AttributesToGet':['y'],` + keys(58, 60) + `}}`)
	if want := "[30 25 0]"; fmt.Sprint(counts) != want {
		t.Errorf("items %v, want %s", counts, want)
	}
	r.want(string(left), `{'bbb':{`+keys(25, 26)+`,`+named[:len(named)-1]+`},'ccc':{`+keys(58, 60)+`,
		'AttributesToGet':['y']}}`)
	if counts, left = read(string(left)); fmt.Sprint(counts) != "[0 1 2]" || string(left) != "{}" {
		t.Errorf("then items %v, left %s", counts, left)
	}
}

// TestScanCostsEachPartition: source: scylladb/scylladb,
// test/alternator/test_returnconsumedcapacity.py: test_scan_consumed_capacity. A new table on
// demand has four partitions; source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ on-demand-capacity-mode.html.
func TestScanCostsEachPartition(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.put("ttt", `{'p':{'S':'a'},'animal':{'S':'cat'}}`)
	r.do("CreateTable", `{'TableName':'one','ProvisionedThroughput':{'ReadCapacityUnits':5,'WriteCapacityUnits':5},
		'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],
		'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}]}`)
	r.put("one", `{'p':{'S':'a'},'animal':{'S':'cat'}}`)
	r.table("many", "")
	for i := range 100 {
		r.put("many", fmt.Sprintf(`{'p':{'S':'%d'}}`, i))
	}
	units := func(more string) (sum float64) {
		var out struct {
			ConsumedCapacity struct{ CapacityUnits float64 }
			LastEvaluatedKey json.RawMessage
		}
		body := r.do("Scan", `{'ReturnConsumedCapacity':'TOTAL',`+more+`}`)
		if err := json.Unmarshal([]byte(body), &out); err != nil {
			t.Fatal(err)
		}
		return out.ConsumedCapacity.CapacityUnits
	}
	for more, want := range map[string]float64{
		`'TableName':'ttt','ConsistentRead':true`: 4,
		`'TableName':'ttt'`:                       2,
		`'TableName':'ttt','ConsistentRead':true,'Segment':0,'TotalSegments':2`: 2,
		`'TableName':'ttt','ConsistentRead':true,'Segment':3,'TotalSegments':4`: 1,
		`'TableName':'one','ConsistentRead':true`:                               1,
		`'TableName':'one'`:                                  0.5,
		`'TableName':'many','ConsistentRead':true`:           4,
		`'TableName':'many','ConsistentRead':true,'Limit':1`: 1, // a page ends in the first
	} {
		if got := units(more); got != want {
			t.Errorf("%s: %v units, want %v", more, got, want)
		}
	}
}
