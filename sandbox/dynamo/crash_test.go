package dynamo_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// whole are requests that use every field. The test replaces each field in turn.
var whole = map[string]string{
	"CreateTable": `{'TableName':'new','BillingMode':'PROVISIONED','ProvisionedThroughput':{'ReadCapacityUnits':1,
		'WriteCapacityUnits':1},
		'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'},{'AttributeName':'c','AttributeType':'N'}],
		'KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'c','KeyType':'RANGE'}],
		'LocalSecondaryIndexes':[{'IndexName':'lll','KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'c',
		'KeyType':'RANGE'}],'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['x']}}],
		'GlobalSecondaryIndexes':[{'IndexName':'ggg','KeySchema':[{'AttributeName':'c','KeyType':'HASH'}],
		'Projection':{'ProjectionType':'ALL'},'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':1}}],
		'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'KEYS_ONLY'},'Tags':[{'Key':'a','Value':'b'}]}`,
	"UpdateTable": `{'TableName':'ttt','AttributeDefinitions':[{'AttributeName':'q','AttributeType':'S'}],
		'GlobalSecondaryIndexUpdates':[
		{'Create':{'IndexName':'ggg','KeySchema':[{'AttributeName':'q','KeyType':'HASH'}],
		'Projection':{'ProjectionType':'ALL'}}},{'Update':{'IndexName':'ggg','ProvisionedThroughput':{'ReadCapacityUnits':1,
		'WriteCapacityUnits':1}}},{'Delete':{'IndexName':'ggg'}}],
		'StreamSpecification':{'StreamEnabled':false}}`,
	"UpdateTimeToLive": `{'TableName':'ttt','TimeToLiveSpecification':{'AttributeName':'x','Enabled':true}}`,
	"TagResource": `{'ResourceArn':'arn:aws:dynamodb:us-east-1:000000000000:table/ttt',
		'Tags':[{'Key':'a','Value':'b'}]}`,
	"UntagResource": `{'ResourceArn':'arn:aws:dynamodb:us-east-1:000000000000:table/ttt','TagKeys':['a']}`,
	"PutItem": `{'TableName':'ttt','Item':{'p':{'S':'a'},
		'l':{'L':[{'M':{'k':{'NULL':true}}},{'NS':['1']},{'BS':['AA==']},{'B':'AA=='},{'BOOL':true}]}},
		'ConditionExpression':'#a = :a','ExpressionAttributeNames':{'#a':'a'},'ExpressionAttributeValues':{':a':{'N':'1'}},
		'ReturnValues':'ALL_OLD','ReturnConsumedCapacity':'INDEXES'}`,
	"UpdateItem": `{'TableName':'ttt','Key':{'p':{'S':'a'}},'AttributeUpdates':{'x':{'Action':'ADD','Value':{'N':'1'}}},
		'Expected':{'x':{'ComparisonOperator':'IN','AttributeValueList':[{'N':'1'}]},'y':{'Exists':false},
		'z':{'Value':{'S':'x'}}},'ConditionalOperator':'OR','ReturnValues':'UPDATED_NEW'}`,
	"DeleteItem": `{'TableName':'ttt','Key':{'p':{'S':'a'}},'ReturnValues':'ALL_OLD',
		'ReturnItemCollectionMetrics':'SIZE'}`,
	"GetItem": `{'TableName':'ttt','Key':{'p':{'S':'a'}},'AttributesToGet':['p'],'ConsistentRead':true}`,
	"Query": `{'TableName':'rrr','KeyConditions':{'p':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'a'}]},
		'c':{'ComparisonOperator':'BETWEEN','AttributeValueList':[{'N':'1'},{'N':'2'}]}},
		'QueryFilter':{'x':{'ComparisonOperator':'NOT_CONTAINS','AttributeValueList':[{'S':'a'}]}},
		'ExclusiveStartKey':{'p':{'S':'a'},'c':{'N':'1'}},'Limit':1,'ScanIndexForward':false,'Select':'COUNT'}`,
	"Scan": `{'TableName':'rrr','Segment':0,'TotalSegments':2,'ScanFilter':{'x':{'ComparisonOperator':'NULL'}},
		'ExclusiveStartKey':{'p':{'S':'a'},'c':{'N':'1'}}}`,
	"BatchWriteItem": `{'RequestItems':{'ttt':[{'PutRequest':{'Item':{'p':{'S':'a'}}}},
		{'DeleteRequest':{'Key':{'p':{'S':'b'}}}}]}}`,
	"BatchGetItem": `{'RequestItems':{'ttt':{'Keys':[{'p':{'S':'a'}},{'p':{'S':'b'}}],'ProjectionExpression':'#p',
		'ExpressionAttributeNames':{'#p':'p'}}}}`,
	"TransactWriteItems": `{'ClientRequestToken':'x','TransactItems':[{'Put':{'TableName':'ttt','Item':{'p':{'S':'a'}}}},
		{'Delete':{'TableName':'ttt','Key':{'p':{'S':'b'}}}},
		{'Update':{'TableName':'ttt','Key':{'p':{'S':'c'}},'UpdateExpression':'REMOVE x'}},
		{'ConditionCheck':{'TableName':'ttt','Key':{'p':{'S':'d'}},'ConditionExpression':'attribute_exists(p)'}}]}`,
	"TransactGetItems": `{'TransactItems':[{'Get':{'TableName':'ttt','Key':{'p':{'S':'a'}},'ProjectionExpression':'p'}}]}`,
}

// TestNoRequestCrashesTheServer sends every request with each of its values replaced by
// something else, and expects an answer to all of them.
func TestNoRequestCrashesTheServer(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.table("rrr", "N")
	r.put("rrr", `{'p':{'S':'a'},'c':{'N':'2'}}`)
	for op, body := range whole {
		var doc any
		if err := json.Unmarshal([]byte(quotes(body)), &doc); err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		replaceEach(doc, func() {
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			send(t, r, op, string(text))
		})
	}
}

func send(t *testing.T, r *rig, op, body string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s %s: %v", op, body, p)
		}
	}()
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Date", "20260101T000000Z")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=0")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if !json.Valid(w.Body.Bytes()) && w.Body.Len() > 0 {
		t.Errorf("%s %s: answered %s", op, body, w.Body)
	}
}

// replaceEach calls f with each value in doc replaced in turn.
func replaceEach(doc any, f func()) {
	others := []any{nil, "", "x", 0, -1, 1.5, true, []any{}, map[string]any{}, []any{nil}, map[string]any{"": nil},
		map[string]any{"x": map[string]any{}}}
	switch d := doc.(type) {
	case map[string]any:
		for k, v := range d {
			for _, o := range others {
				d[k] = o
				f()
			}
			delete(d, k)
			f()
			d[k] = v
			replaceEach(v, f)
		}
	case []any:
		for i, v := range d {
			for _, o := range others {
				d[i] = o
				f()
			}
			d[i] = v
			replaceEach(v, f)
		}
	}
}
