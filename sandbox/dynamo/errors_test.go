package dynamo_test

import (
	"strings"
	"testing"
)

// refusals are requests with the service's answer to them. Table "t" has the key p (S),
// "r" has p (S) and c (N).
var refusals = []struct{ name, op, body, code, message string }{
	// shape
	{"not JSON", "PutItem", `{`, "SerializationException", ""},
	{"table name is a number", "PutItem", `{'TableName':23}`, "SerializationException",
		"NUMBER_VALUE cannot be converted to String"},
	{"item is a list", "PutItem", `{'TableName':'ttt','Item':[]}`, "SerializationException",
		"Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
	{"value is a string", "PutItem", `{'TableName':'ttt','Item':{'p':'x'}}`, "SerializationException",
		"Unexpected value type in payload"},
	{"number is a JSON number", "PutItem", `{'TableName':'ttt','Item':{'p':{'N':5}}}`, "SerializationException",
		"NUMBER_VALUE cannot be converted to String"},
	{"bad base64", "PutItem", `{'TableName':'ttt','Item':{'p':{'B':'abc'}}}`, "SerializationException",
		"Base64 encoded length is expected a multiple of 4 bytes but found: 3"},
	{"stray bits in base64", "PutItem", `{'TableName':'ttt','Item':{'p':{'B':'AAF='}}}`, "SerializationException",
		"Invalid last non-pad Base64 character dectected"},
	{"line break in base64", "PutItem", `{'TableName':'ttt','Item':{'p':{'BS':['AAA\n\n\n\n=']}}}`,
		"SerializationException", "Invalid last non-pad Base64 character dectected"},
	{"unknown operation", "Frobnicate", `{}`, "UnknownOperationException", ""},
	{"unsupported operation", "ExecuteStatement", `{}`, "ValidationException",
		"ExecuteStatement is not supported by the sandbox"},
	// constraints
	{"nothing at all", "PutItem", `{}`, "ValidationException",
		"2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'item' failed to satisfy constraint: Member must not be null"},
	{"short table name", "GetItem", `{'TableName':'ab','Key':{}}`, "ValidationException",
		"1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length " +
			"greater than or equal to 3"},
	{"bad enum", "PutItem", `{'TableName':'ttt','Item':{},'ReturnValues':'none'}`, "ValidationException",
		"1 validation error detected: Value 'none' at 'returnValues' failed to satisfy constraint: " +
			"Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"},
	{"limit of nothing", "Scan", `{'TableName':'ttt','Limit':0}`, "ValidationException",
		"1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater " +
			"than or equal to 1"},
	{"create without name", "CreateTable", `{}`, "ValidationException",
		"The parameter 'TableName' is required but was not present in the request"},
	// values
	{"empty value", "PutItem", `{'TableName':'ttt','Item':{'p':{}}}`, "ValidationException",
		"Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
	{"two types", "PutItem", `{'TableName':'ttt','Item':{'p':{'S':'a','N':'1'}}}`, "ValidationException",
		"Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"},
	{"false null", "PutItem", `{'TableName':'ttt','Item':{'p':{'NULL':false}}}`, "ValidationException",
		"One or more parameter values were invalid: Null attribute value types must have the value of true"},
	{"empty set", "PutItem", `{'TableName':'ttt','Item':{'p':{'SS':[]}}}`, "ValidationException",
		"One or more parameter values were invalid: An string set  may not be empty"},
	{"duplicates in a string set", "PutItem", `{'TableName':'ttt','Item':{'p':{'SS':['a','b','a']}}}`,
		"ValidationException",
		"One or more parameter values were invalid: Input collection [a, b, a] contains duplicates."},
	{"duplicates in a number set, by value", "PutItem", `{'TableName':'ttt','Item':{'p':{'NS':['1','1.0']}}}`,
		"ValidationException",
		"Input collection contains duplicates"},
	{"no number", "PutItem", `{'TableName':'ttt','Item':{'p':{'N':'NaN'}}}`, "ValidationException",
		"The parameter cannot be converted to a numeric value: NaN"},
	{"39 digits", "PutItem", `{'TableName':'ttt','Item':{'p':{'N':'123456789012345678901234567890123456789'}}}`,
		"ValidationException",
		"Attempting to store more than 38 significant digits in a Number"},
	{"too large", "PutItem", `{'TableName':'ttt','Item':{'p':{'N':'1e126'}}}`, "ValidationException",
		"Number overflow. Attempting to store a number with magnitude larger than supported range"},
	{"too small", "PutItem", `{'TableName':'ttt','Item':{'p':{'N':'1e-131'}}}`, "ValidationException",
		"Number underflow. Attempting to store a number with magnitude smaller than supported range"},
	{"item too large", "PutItem", `{'TableName':'ttt','Item':{'p':{'S':'` + strings.Repeat("x", 400<<10) + `'}}}`,
		"ValidationException",
		"Item size has exceeded the maximum allowed size"},
	// validation comes before the table is looked up
	{"no table", "PutItem", `{'TableName':'none','Item':{}}`, "ResourceNotFoundException", "Requested resource not found"},
	{"no table to describe", "DescribeTable", `{'TableName':'none'}`, "ResourceNotFoundException",
		"Requested resource not found: Table: none not found"},
	// keys
	{"no key", "PutItem", `{'TableName':'ttt','Item':{'a':{'S':'x'}}}`, "ValidationException",
		"One or more parameter values were invalid: Missing the key p in the item"},
	{"key of the wrong type", "PutItem", `{'TableName':'ttt','Item':{'p':{'N':'1'}}}`, "ValidationException",
		"One or more parameter values were invalid: Type mismatch for key p expected: S actual: N"},
	{"empty key", "PutItem", `{'TableName':'ttt','Item':{'p':{'S':''}}}`, "ValidationException",
		"One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string " +
			"value. Key: p"},
	{"long key", "PutItem", `{'TableName':'ttt','Item':{'p':{'S':'` + strings.Repeat("x", 2049) + `'}}}`,
		"ValidationException",
		"One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"},
	{"get without sort key", "GetItem", `{'TableName':'rrr','Key':{'p':{'S':'x'}}}`, "ValidationException",
		"The provided key element does not match the schema"},
	{"get with too much", "GetItem", `{'TableName':'ttt','Key':{'p':{'S':'x'},'q':{'S':'x'}}}`, "ValidationException",
		"The provided key element does not match the schema"},
	// return values
	{"put returns new", "PutItem", `{'TableName':'ttt','Item':{},'ReturnValues':'ALL_NEW'}`, "ValidationException",
		"ReturnValues can only be ALL_OLD or NONE"},
	// expressions: placeholders
	{"names without expression", "PutItem", `{'TableName':'ttt','Item':{},'ExpressionAttributeNames':{'#a':'a'}}`,
		"ValidationException",
		"ExpressionAttributeNames can only be specified when using expressions"},
	{"values without expression", "UpdateItem",
		`{'TableName':'ttt','Key':{},'ExpressionAttributeValues':{':a':{'S':'a'}}}`, "ValidationException",
		"ExpressionAttributeValues can only be specified when using expressions: UpdateExpression and ConditionExpression " +
			"are null"},
	{"no names", "PutItem", `{'TableName':'ttt','Item':{},'ConditionExpression':'a','ExpressionAttributeNames':{}}`,
		"ValidationException",
		"ExpressionAttributeNames must not be empty"},
	{"bad name", "PutItem", `{'TableName':'ttt','Item':{},'ConditionExpression':'a',
		'ExpressionAttributeNames':{'a':'a'}}`, "ValidationException",
		`ExpressionAttributeNames contains invalid key: Syntax error; key: "a"`},
	{"bad value", "PutItem", `{'TableName':'ttt','Item':{},'ConditionExpression':'a',
		'ExpressionAttributeValues':{':a':{'N':'x'}}}`, "ValidationException",
		"ExpressionAttributeValues contains invalid value: The parameter cannot be converted to a numeric value: x for key " +
			":a"},
	{"unused name", "PutItem", `{'TableName':'ttt','Item':{},'ConditionExpression':'attribute_exists(a)',
		'ExpressionAttributeNames':{'#a':'a','#b':'b'}}`,
		"ValidationException", "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #b}"},
	{"unused value", "PutItem", `{'TableName':'ttt','Item':{},'ConditionExpression':'attribute_exists(a)',
		'ExpressionAttributeValues':{':a':{'S':'a'}}}`,
		"ValidationException", "Value provided in ExpressionAttributeValues unused in expressions: keys: {:a}"},
	{"mixed styles", "PutItem", `{'TableName':'ttt','Item':{},'ConditionExpression':'attribute_exists(a)','Expected':{}}`,
		"ValidationException",
		"Can not use both expression and non-expression parameters in the same request: Non-expression parameters: " +
			"{Expected} Expression parameters: {ConditionExpression}"},
	// queries
	{"query without condition", "Query", `{'TableName':'ttt'}`, "ValidationException",
		"Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
	{"query without partition key", "Query",
		`{'TableName':'rrr','KeyConditionExpression':'c = :c','ExpressionAttributeValues':{':c':{'N':'1'}}}`,
		"ValidationException", "Query condition missed key schema element: p"},
	{"query by range of partitions", "Query",
		`{'TableName':'rrr','KeyConditionExpression':'p > :c','ExpressionAttributeValues':{':c':{'S':'1'}}}`,
		"ValidationException", "Query key condition not supported"},
	{"query with OR", "Query", `{'TableName':'rrr','KeyConditionExpression':'p = :c OR c = :c',
		'ExpressionAttributeValues':{':c':{'S':'1'}}}`,
		"ValidationException", "Invalid operator used in KeyConditionExpression: OR"},
	{"query with wrong type", "Query",
		`{'TableName':'rrr','KeyConditionExpression':'p = :c AND c = :c','ExpressionAttributeValues':{':c':{'S':'1'}}}`,
		"ValidationException", "One or more parameter values were invalid: Condition parameter type does not match schema " +
			"type"},
	{"filter on a key", "Query", `{'TableName':'rrr','KeyConditionExpression':'p = :c','FilterExpression':'c > :c',
		'ExpressionAttributeValues':{':c':{'S':'1'}}}`,
		"ValidationException", "Filter Expression can only contain non-primary key attributes: Primary key attribute: c"},
	{"filter before key condition", "Query",
		`{'TableName':'rrr','KeyConditionExpression':'p =','FilterExpression':'x =',
			'ExpressionAttributeValues':{':c':{'S':'1'}}}`,
		"ValidationException", `Invalid FilterExpression: Syntax error; token: "<EOF>", near: "="`},
	{"filter on a key before an odd key condition", "Query",
		`{'TableName':'rrr','KeyConditionExpression':'c = :n','FilterExpression':'c > :n',
			'ExpressionAttributeValues':{':n':{'N':'1'}}}`,
		"ValidationException", "Filter Expression can only contain non-primary key attributes: Primary key attribute: c"},
	{"scan from half a key", "Scan", `{'TableName':'rrr','ExclusiveStartKey':{'p':{'S':'x'}}}`, "ValidationException",
		"The provided starting key is invalid: The provided key element does not match the schema"},
	{"scan from a key of the wrong type", "Scan", `{'TableName':'ttt','ExclusiveStartKey':{'p':{'N':'1'}}}`,
		"ValidationException",
		"The provided starting key is invalid: The provided key element does not match the schema"},
	{"query from half a key", "Query",
		`{'TableName':'rrr','ExclusiveStartKey':{'p':{'S':'x'}},'KeyConditionExpression':'p = :c',
			'ExpressionAttributeValues':{':c':{'S':'1'}}}`,
		"ValidationException", "The provided starting key is invalid"},
	{"query from elsewhere", "Query",
		`{'TableName':'rrr','ExclusiveStartKey':{'p':{'S':'x'},'c':{'N':'1'}},'KeyConditionExpression':'p = :c',
			'ExpressionAttributeValues':{':c':{'S':'1'}}}`,
		"ValidationException", "The provided starting key is outside query boundaries based on provided conditions"},
	{"operator alone", "Scan", `{'TableName':'ttt','ConditionalOperator':'OR'}`, "ValidationException",
		"ConditionalOperator cannot be used without Filter or Expected"},
	{"query of no index", "Query",
		`{'TableName':'rrr','IndexName':'nope','KeyConditionExpression':'p = :c',
			'ExpressionAttributeValues':{':c':{'S':'1'}}}`,
		"ValidationException", "The table does not have the specified index: nope"},
	{"segment out of range", "Scan", `{'TableName':'ttt','Segment':2,'TotalSegments':2}`, "ValidationException",
		"The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 2 is not less than " +
			"TotalSegments: 2"},
	{"segment alone", "Scan", `{'TableName':'ttt','Segment':0}`, "ValidationException",
		"The TotalSegments parameter is required but was not present in the request when Segment parameter is present"},
	// batches and transactions
	{"batch of duplicates", "BatchWriteItem",
		`{'RequestItems':{'ttt':[{'PutRequest':{'Item':{'p':{'S':'a'}}}},{'DeleteRequest':{'Key':{'p':{'S':'a'}}}}]}}`,
		"ValidationException", "Provided list of item keys contains duplicates"},
	{"batch without key", "BatchWriteItem", `{'RequestItems':{'ttt':[{'PutRequest':{'Item':{'q':{'S':'a'}}}}]}}`,
		"ValidationException", "The provided key element does not match the schema"},
	{"batch without table", "BatchWriteItem", `{'RequestItems':{'none':[{'PutRequest':{'Item':{'p':{'S':'a'}}}}]}}`,
		"ResourceNotFoundException", "Requested resource not found"},
	{"reading duplicates", "BatchGetItem", `{'RequestItems':{'ttt':{'Keys':[{'p':{'S':'a'}},{'p':{'S':'a'}}]}}}`,
		"ValidationException", "Provided list of item keys contains duplicates"},
	{"transaction of duplicates", "TransactWriteItems",
		`{'TransactItems':[{'Put':{'TableName':'ttt','Item':{'p':{'S':'a'}}}},
			{'Delete':{'TableName':'ttt','Key':{'p':{'S':'a'}}}}]}`,
		"ValidationException", "Transaction request cannot include multiple operations on one item"},
	{"transaction of nothing", "TransactWriteItems", `{'TransactItems':[{}]}`, "ValidationException",
		"TransactItems can only contain one of Check, Put, Update or Delete"},
	// tables
	{"capacity on demand", "CreateTable",
		`{'TableName':'xxx','AttributeDefinitions':[],'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],
			'BillingMode':'PAY_PER_REQUEST','ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':1}}`,
		"ValidationException", "One or more parameter values were invalid: Neither ReadCapacityUnits nor " +
			"WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"},
	{"no capacity", "CreateTable",
		`{'TableName':'xxx','AttributeDefinitions':[],'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}]}`,
		"ValidationException", "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must " +
			"both be specified when BillingMode is PROVISIONED"},
	{"table exists", "CreateTable",
		`{'TableName':'ttt','BillingMode':'PAY_PER_REQUEST',
			'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],
			'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}]}`,
		"ResourceInUseException", "Table already exists: ttt"},
	{"time to live is off", "UpdateTimeToLive",
		`{'TableName':'ttt','TimeToLiveSpecification':{'AttributeName':'x','Enabled':false}}`,
		"ValidationException", "TimeToLive is already disabled"},
	{"nothing to update", "UpdateTable", `{'TableName':'ttt'}`, "ValidationException",
		nothingToUpdate},
}

// nothingToUpdate is the message for an update of a table without a change.
const nothingToUpdate = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, " +
	"GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, " +
	"MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"

// TestLongAttributeNamesAreRefusedEverywhere sends names of 65,535 bytes, which the service takes,
// and of one byte more.
func TestLongAttributeNamesAreRefusedEverywhere(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	for name, c := range map[string]struct{ op, body string }{
		"item":           {"PutItem", `{'TableName':'ttt','Item':{'p':{'S':'a'},'NAME':{'N':'1'}}}`},
		"map in an item": {"PutItem", `{'TableName':'ttt','Item':{'p':{'S':'a'},'m':{'M':{'NAME':{'N':'1'}}}}}`},
		"batch": {"BatchWriteItem",
			`{'RequestItems':{'ttt':[{'PutRequest':{'Item':{'p':{'S':'a'},'NAME':{'N':'1'}}}}]}}`},
		"transaction": {"TransactWriteItems",
			`{'TransactItems':[{'Put':{'TableName':'ttt','Item':{'p':{'S':'a'},'NAME':{'N':'1'}}}}]}`},
		"update": {"UpdateItem",
			`{'TableName':'ttt','Key':{'p':{'S':'a'}},'UpdateExpression':'REMOVE #n','ExpressionAttributeNames':{'#n':'NAME'}}`},
		"condition": {"DeleteItem",
			`{'TableName':'ttt','Key':{'p':{'S':'b'}},'ConditionExpression':'attribute_not_exists(#n)',
				'ExpressionAttributeNames':{'#n':'NAME'}}`},
		"projection": {"GetItem",
			`{'TableName':'ttt','Key':{'p':{'S':'a'}},'ProjectionExpression':'#n','ExpressionAttributeNames':{'#n':'NAME'}}`},
		"filter": {"Scan", `{'TableName':'ttt','FilterExpression':'attribute_exists(#n)',
			'ExpressionAttributeNames':{'#n':'NAME'}}`},
		"value": {"Scan", `{'TableName':'ttt','FilterExpression':'p = :v',
			'ExpressionAttributeValues':{':v':{'M':{'NAME':{'N':'1'}}}}}`},
		"attributes to get": {"GetItem", `{'TableName':'ttt','Key':{'p':{'S':'a'}},'AttributesToGet':['NAME']}`},
		"attribute updates": {"UpdateItem",
			`{'TableName':'ttt','Key':{'p':{'S':'a'}},'AttributeUpdates':{'NAME':{'Action':'DELETE'}}}`},
		"expected":    {"DeleteItem", `{'TableName':'ttt','Key':{'p':{'S':'b'}},'Expected':{'NAME':{'Exists':false}}}`},
		"scan filter": {"Scan", `{'TableName':'ttt','ScanFilter':{'NAME':{'ComparisonOperator':'NULL'}}}`},
		"query filter": {"Query", `{'TableName':'ttt','KeyConditions':{'p':{'ComparisonOperator':'EQ',
			'AttributeValueList':[{'S':'a'}]}},
			'QueryFilter':{'NAME':{'ComparisonOperator':'NULL'}}}`},
	} {
		longest := strings.Repeat("n", 65535)
		if a := r.raw(c.op, strings.ReplaceAll(quotes(c.body), "NAME", longest)); a.Code != "" {
			t.Errorf("%s: a name of 65,535 bytes: %s: %.200s", name, a.Code, a.Message)
		}
		a := r.raw(c.op, strings.ReplaceAll(quotes(c.body), "NAME", longest+"n"))
		if a.Code != "ValidationException" || !strings.Contains(a.Message,
			"Attribute name is too large, must be less than 65536 bytes") {
			t.Errorf("%s: a name of 65,536 bytes: %s: %.200s", name, a.Code, a.Message)
		}
	}
}

func TestRefusalsReadAsTheServicesDo(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.table("rrr", "N")
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			got := r.raw(c.op, quotes(c.body))
			if got.Code != c.code || got.Message != c.message {
				t.Errorf("got  %s: %s\nwant %s: %s\n%.300s", got.Code, got.Message, c.code, c.message, got.Body)
			}
		})
	}
}
