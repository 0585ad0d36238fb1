package dynamo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// records reads all records of a table's stream, in order of their sequence numbers.
func (r *rig) records(table string) []record {
	r.t.Helper()
	arn, _, _, _ := r.stream.Describe(table)
	var d struct {
		StreamDescription struct{ Shards []struct{ ShardId string } }
	}
	r.decode(r.do("DescribeStream", `{'StreamArn':'`+arn+`'}`), &d)
	var all []record
	for _, sh := range d.StreamDescription.Shards {
		var it struct{ ShardIterator string }
		r.decode(r.do("GetShardIterator",
			`{'StreamArn':'`+arn+`','ShardId':'`+sh.ShardId+`','ShardIteratorType':'TRIM_HORIZON'}`), &it)
		var page struct{ Records []record }
		r.decode(r.do("GetRecords", `{'ShardIterator':'`+it.ShardIterator+`'}`), &page)
		all = append(all, page.Records...)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i].Dynamodb.SequenceNumber, all[j].Dynamodb.SequenceNumber
		return len(a) < len(b) || len(a) == len(b) && a < b
	})
	return all
}

type record struct {
	EventName    string
	UserIdentity *struct{ Type, PrincipalId string }
	Dynamodb     struct {
		Keys, NewImage, OldImage json.RawMessage
		SequenceNumber           string
		SizeBytes                int
	}
}

func (r *rig) decode(body string, into any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		r.t.Fatal(err)
	}
}

// events writes records in short: I, M or R and the partition key.
func events(all []record) string {
	var out []string
	for _, rec := range all {
		var k struct{ P struct{ S string } }
		_ = json.Unmarshal(rec.Dynamodb.Keys, &k) // a wrong key shows in the comparison
		out = append(out, rec.EventName[:1]+k.P.S)
	}
	return strings.Join(out, " ")
}

func TestWritesThatChangeNothingMakeNoRecord(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.put("ttt", `{'p':{'S':'a'},'n':{'N':'1.0'},'s':{'SS':['x','y']},'m':{'M':{'k':{'N':'1'},'j':{'L':[]}}}}`)
	r.put("ttt", `{'m':{'M':{'j':{'L':[]},'k':{'N':'1e0'}}},'s':{'SS':['y','x']},'n':{'N':'1'},'p':{'S':'a'}}`)
	r.do("UpdateItem", `{'TableName':'ttt','Key':{'p':{'S':'a'}},'UpdateExpression':'SET n = :n REMOVE nothing',
		'ExpressionAttributeValues':{':n':{'N':'1.00'}}}`)
	r.do("UpdateItem", `{'TableName':'ttt','Key':{'p':{'S':'a'}}}`)
	r.do("DeleteItem", `{'TableName':'ttt','Key':{'p':{'S':'none'}}}`)
	r.do("UpdateItem", `{'TableName':'ttt','Key':{'p':{'S':'b'}}}`)                               // creates
	r.do("UpdateItem", `{'TableName':'ttt','Key':{'p':{'S':'c'}},'UpdateExpression':'REMOVE x'}`) // does not
	r.do("TransactWriteItems", `{'TransactItems':[{'ConditionCheck':{'TableName':'ttt','Key':{'p':{'S':'a'}},
		'ConditionExpression':'attribute_exists(n)'}},
		{'Put':{'TableName':'ttt','Item':{'p':{'S':'b'}}}}]}`)
	r.put("ttt", `{'p':{'S':'a'},'n':{'S':'1'}}`)
	r.do("DeleteItem", `{'TableName':'ttt','Key':{'p':{'S':'a'}}}`)
	if got, want := events(r.records("ttt")), "Ia Ib Ma Ra"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBatchesAndTransactionsMakeOneRecordPerItem(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.do("BatchWriteItem", `{'RequestItems':{'ttt':[{'PutRequest':{'Item':{'p':{'S':'a'}}}},
		{'DeleteRequest':{'Key':{'p':{'S':'z'}}}},{'PutRequest':{'Item':{'p':{'S':'b'}}}}]}}`)
	r.do("TransactWriteItems", `{'TransactItems':[{'Delete':{'TableName':'ttt','Key':{'p':{'S':'a'}}}},
		{'Put':{'TableName':'ttt','Item':{'p':{'S':'c'}}}},
		{'Update':{'TableName':'ttt','Key':{'p':{'S':'b'}},'UpdateExpression':'SET x = :x',
		'ExpressionAttributeValues':{':x':{'N':'1'}}}}]}`)
	a := r.raw("TransactWriteItems", quotes(`{'TransactItems':[{'Put':{'TableName':'ttt','Item':{'p':{'S':'d'}}}},
		{'ConditionCheck':{'TableName':'ttt','Key':{'p':{'S':'c'}},'ConditionExpression':'attribute_not_exists(p)'}},
		{'Update':{'TableName':'ttt','Key':{'p':{'S':'b'}},'UpdateExpression':'ADD p :x',
		'ExpressionAttributeValues':{':x':{'N':'1'}}}}]}`))
	if a.Code != "TransactionCanceledException" {
		t.Errorf("got %v", a)
	}
	if got, want := events(r.records("ttt")), "Ia Ib Ra Ic Mb"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n, _ := r.ledger.Count("ttt"); n != 5 {
		t.Errorf("ledger has %d changes", n)
	}
}

func TestTimeToLiveTakesNumbersOfTheLastFiveYears(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	now := time.Now()
	at := func(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }
	r.put("ttt", `{'p':{'S':'due'},'ttl':{'N':'`+at(-time.Hour)+`.75'}}`) // before it is on
	r.do("UpdateTimeToLive", `{'TableName':'ttt','TimeToLiveSpecification':{'AttributeName':'ttl','Enabled':true}}`)
	r.put("ttt", `{'p':{'S':'due2'},'ttl':{'N':'`+at(-time.Minute)+`'}}`)
	r.put("ttt", `{'p':{'S':'later'},'ttl':{'N':'`+at(time.Hour)+`'}}`)
	r.put("ttt", `{'p':{'S':'ancient'},'ttl':{'N':'`+at(-6*365*24*time.Hour)+`'}}`)
	r.put("ttt", `{'p':{'S':'text'},'ttl':{'S':'`+at(-time.Hour)+`'}}`)
	r.put("ttt", `{'p':{'S':'postponed'},'ttl':{'N':'`+at(-time.Hour)+`'}}`)
	r.put("ttt", `{'p':{'S':'postponed'},'ttl':{'N':'`+at(time.Hour)+`'}}`)
	r.put("ttt", `{'p':{'S':'user'},'ttl':{'N':'`+at(time.Hour)+`'}}`)
	r.do("DeleteItem", `{'TableName':'ttt','Key':{'p':{'S':'user'}}}`)
	if n := r.ExpireNow(now); n != 2 {
		t.Errorf("%d items expired", n)
	}
	if n := r.ExpireNow(now); n != 0 {
		t.Errorf("%d items expired twice", n)
	}
	for p, there := range map[string]bool{"due": false, "due2": false, "later": true, "ancient": true, "text": true,
		"postponed": true} {
		if got := r.item("ttt", p) != "null"; got != there {
			t.Errorf("%s: there is %v", p, got)
		}
	}
	byTTL := map[bool]int{}
	for _, rec := range r.records("ttt") {
		if rec.EventName == "REMOVE" {
			id := rec.UserIdentity
			byTTL[id != nil && id.Type == "Service" && id.PrincipalId == "dynamodb.amazonaws.com"]++
		}
	}
	if byTTL[true] != 2 || byTTL[false] != 1 {
		t.Errorf("removals by time to live and not: %v", byTTL)
	}
}

func TestUpdatesOfNestedPaths(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	update := func(expression string) string {
		return r.do("UpdateItem", `{'TableName':'ttt','Key':{'p':{'S':'a'}},
			'UpdateExpression':'`+expression+`','ReturnValues':'UPDATED_NEW'}`)
	}
	r.want(update("REMOVE x.y"), `{}`)
	r.want(r.item("ttt", "a"), `null`)
	r.put("ttt", `{'p':{'S':'a'},'l':{'L':[{'S':'0'},{'S':'1'},{'S':'2'}]},'m':{'M':{'k':{'N':'1'}}}}`)
	r.want(update("REMOVE l[1], m.k"), `{'Attributes':{'l':{'L':[{'S':'2'}]}}}`)
	r.want(update("REMOVE l[1]"), `{}`)
	if got, want := events(r.records("ttt")), "Ia Ma Ma"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTransactionTokensAreRemembered(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	add := `{'ClientRequestToken':'x','TransactItems':[{'Update':{'TableName':'ttt','Key':{'p':{'S':'a'}},
		'UpdateExpression':'ADD n :1','ExpressionAttributeValues':{':1':{'N':'1'}}}}]}`
	r.do("TransactWriteItems", add)
	r.do("TransactWriteItems", add)
	r.want(r.item("ttt", "a"), `{'p':{'S':'a'},'n':{'N':'1'}}`)
	r.clock.Advance(11 * time.Minute)
	r.do("TransactWriteItems", add)
	r.want(r.item("ttt", "a"), `{'p':{'S':'a'},'n':{'N':'2'}}`)
}

func TestSavedSandboxIsRestored(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.table("rrr", "N")
	r.do("UpdateTimeToLive", `{'TableName':'ttt','TimeToLiveSpecification':{'AttributeName':'ttl','Enabled':true}}`)
	for i := range 20 {
		item := fmt.Sprintf(`{"p":{"S":"k%d"},"c":{"N":"%d"},"ttl":{"N":"1"},"b":{"B":"AAE="},
			"t":{"S":"line\nbreak"}}`, i%7, i)
		if err := r.Load("rrr", []byte(item)); err != nil {
			t.Fatal(err)
		}
		if err := r.Put("ttt", []byte(item)); err != nil {
			t.Fatal(err)
		}
	}
	var first, second bytes.Buffer
	if err := r.Save(&first); err != nil {
		t.Fatal(err)
	}
	again := dynamo.New(dynamo.Options{Stream: stream.New(stream.Options{})})
	if err := again.Restore(bytes.NewReader(first.Bytes())); err != nil {
		t.Fatal(err)
	}
	if err := again.Save(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("what was restored differs from what was saved")
	}
	if err := again.Restore(bytes.NewReader(first.Bytes())); err == nil {
		t.Error("restored over existing tables")
	}
}

func TestLargePagesEndAtOneMegabyte(t *testing.T) {
	r := newRig(t)
	r.table("rrr", "N")
	for i := range 5 {
		item := fmt.Sprintf(`{"p":{"S":"a"},"c":{"N":"%d"},"v":{"S":"%s"}}`, i, strings.Repeat("v", 390<<10))
		if err := r.Put("rrr", []byte(item)); err != nil {
			t.Fatal(err)
		}
	}
	var page struct {
		Count, ScannedCount int
		LastEvaluatedKey    json.RawMessage
	}
	r.decode(r.do("Scan", `{'TableName':'rrr','FilterExpression':'attribute_not_exists(v)'}`), &page)
	if page.Count != 0 || page.ScannedCount != 2 || page.LastEvaluatedKey == nil {
		t.Errorf("got %+v", page)
	}
}

func TestSecondaryIndexesAreReadInTheirOrder(t *testing.T) {
	r := newRig(t)
	r.do("CreateTable", `{'TableName':'iii','BillingMode':'PAY_PER_REQUEST',
		'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'},
		{'AttributeName':'c','AttributeType':'S'},{'AttributeName':'n','AttributeType':'N'}],
		'KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'c','KeyType':'RANGE'}],
		'LocalSecondaryIndexes':[{'IndexName':'lsi','KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'n',
		'KeyType':'RANGE'}],'Projection':{'ProjectionType':'KEYS_ONLY'}}],
		'GlobalSecondaryIndexes':[{'IndexName':'gsi','KeySchema':[{'AttributeName':'c','KeyType':'HASH'},{'AttributeName':'n',
		'KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}]}`)
	for i, n := range []int{30, -1, 7, 7} {
		r.put("iii", fmt.Sprintf(`{'p':{'S':'p%d'},'c':{'S':'c'},'n':{'N':'%d'},'x':{'S':'x'}}`, i%2, n+i/3))
	}
	r.put("iii", `{'p':{'S':'p0'},'c':{'S':'d'}}`)
	got := r.do("Query", `{'TableName':'iii','IndexName':'gsi','KeyConditionExpression':'c = :c',
		'ExpressionAttributeValues':{':c':{'S':'c'}},'ProjectionExpression':'n'}`)
	r.want(got, `{'Count':2,'ScannedCount':2,'Items':[{'n':{'N':'7'}},{'n':{'N':'8'}}]}`)
	got = r.do("Query", `{'TableName':'iii','IndexName':'lsi','KeyConditionExpression':'p = :p',
		'ExpressionAttributeValues':{':p':{'S':'p0'}}}`)
	r.want(got, `{'Count':1,'ScannedCount':1,'Items':[{'p':{'S':'p0'},'c':{'S':'c'},'n':{'N':'7'}}]}`)
	got = r.do("DeleteItem", `{'TableName':'iii','Key':{'p':{'S':'p9'},'c':{'S':'c'}},
		'ReturnItemCollectionMetrics':'SIZE'}`)
	r.want(got, `{'ItemCollectionMetrics':{'ItemCollectionKey':{'p':{'S':'p9'}},'SizeEstimateRangeGB':[0,1]}}`)
	a := r.raw("PutItem", quotes(`{'TableName':'iii','Item':{'p':{'S':'a'},'c':{'S':'b'},'n':{'S':'x'}}}`))
	if want := "One or more parameter values were invalid: Type mismatch for Index Key n Expected: N Actual: S " +
		"IndexName: gsi"; a.Message != want {
		t.Errorf("got %s", a.Message)
	}
}

func TestRecordSizesFollowTheViewType(t *testing.T) {
	r := newRig(t)
	for view, want := range map[string]string{"KEYS_ONLY": "2 2", "NEW_IMAGE": "7 8", "OLD_IMAGE": "2 7",
		"NEW_AND_OLD_IMAGES": "7 13"} {
		r.do("CreateTable", `{'TableName':'`+view+`','BillingMode':'PAY_PER_REQUEST',
			'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],
			'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],'StreamSpecification':{'StreamEnabled':true,
			'StreamViewType':'`+view+`'}}`)
		r.put(view, `{'p':{'S':'a'},'v':{'S':'xx'}}`)
		r.put(view, `{'p':{'S':'a'},'v':{'S':'xxx'}}`)
		var got []string
		for _, rec := range r.records(view) {
			got = append(got, fmt.Sprint(rec.Dynamodb.SizeBytes))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", view, got, want)
		}
	}
}
