package dynamo_test

import (
	"strings"
	"testing"
)

// TestEmptyAttributeNamesAreRefused: table ttt has the key p (S). The suite has no other text than
// "Empty attribute name" of the message.
func TestEmptyAttributeNamesAreRefused(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	const key = `'TableName':'ttt','Key':{'p':{'S':'a'}}`
	var all []refusal
	for name, c := range map[string]struct{ op, body string }{
		"item":   {"PutItem", `{'TableName':'ttt','Item':{'p':{'S':'a'},'':{'N':'1'}}}`},
		"nested": {"PutItem", `{'TableName':'ttt','Item':{'p':{'S':'a'},'m':{'M':{'':{'N':'1'}}}}}`},
		"batch":  {"BatchWriteItem", `{'RequestItems':{'ttt':[{'PutRequest':{'Item':{'p':{'S':'a'},'':{'N':'1'}}}}]}}`},
		"transaction": {"TransactWriteItems", `{'TransactItems':[{'Put':{'TableName':'ttt',
			'Item':{'p':{'S':'a'},'':{'N':'1'}}}}]}`},
		"to get":   {"GetItem", `{` + key + `,'AttributesToGet':['']}`},
		"updates":  {"UpdateItem", `{` + key + `,'AttributeUpdates':{'':{'Action':'DELETE'}}}`},
		"expected": {"DeleteItem", `{` + key + `,'Expected':{'':{'Exists':false}}}`},
		"filter":   {"Scan", `{'TableName':'ttt','ScanFilter':{'':{'ComparisonOperator':'NULL'}}}`},
	} {
		all = append(all, refusal{name, c.op, c.body, "ValidationException", "Empty attribute name",
			scylla + "test_limits.py: test_limit_attribute_length_nonkey_empty"})
	}
	all = append(all, refusal{"placeholder", "GetItem", `{` + key + `,'ProjectionExpression':'#n',
		'ExpressionAttributeNames':{'#n':''}}`, "ValidationException",
		"ExpressionAttributeNames contains invalid value: Empty attribute name for key #n",
		scylla + "test_limits.py: test_limit_attribute_length_nonkey_empty"})
	r.refuses(t, all)
}

// indexedByText makes a table with key pk and a global index gsi by g and s, all texts.
func indexedByText(r *rig) { r.do("CreateTable", withIndex("ttt", "ALL", "g:HASH", "s:RANGE")) }

const (
	largeHash = "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of" +
		"2048 bytes"
	largeRange = "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size " +
		"limit of 1024 bytes"
	emptyOnPut = "One or more parameter values are not valid. A value specified for a secondary index key is not " +
		"supported. The AttributeValue for a key attribute cannot contain an empty string value. IndexName: gsi, IndexKey: g"
	emptyOnUpdate = "One or more parameter values are not valid. The update expression attempted to update a secondary " +
		"index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty string " +
		"value."
	dynoxide = "https://github.com/nubo-db/dynoxide/blob/main/tests/index_key_validation.rs"
)

// TestTableKeyTooLargeForAnIndex has an index with the table's key the other way round. Source of
// what a sort key of an index may hold, be it of the table's key or not: getmoto/moto,
// moto/dynamodb/models/table.py: _validate_key_sizes.
func TestTableKeyTooLargeForAnIndex(t *testing.T) {
	r := newRig(t)
	r.do("CreateTable", `{'TableName':'ttt','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[
		{'AttributeName':'p','AttributeType':'S'},{'AttributeName':'c','AttributeType':'S'}],
		'KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'c','KeyType':'RANGE'}],
		'GlobalSecondaryIndexes':[{'IndexName':'ggg','Projection':{'ProjectionType':'ALL'},'KeySchema':[
		{'AttributeName':'c','KeyType':'HASH'},{'AttributeName':'p','KeyType':'RANGE'}]}]}`)
	key := func(n int) string { return `{'p':{'S':'` + strings.Repeat("x", n) + `'},'c':{'S':'1'}}` }
	const source = "https://github.com/getmoto/moto/blob/master/moto/dynamodb/models/table.py"
	r.refuses(t, []refusal{
		{"put", "PutItem", `{'TableName':'ttt','Item':` + key(1025) + `}`, "ValidationException", largeRange, source},
		{"new item by an update", "UpdateItem", `{'TableName':'ttt','Key':` + key(1025) + `}`, "ValidationException",
			largeRange, source},
	})
	r.put("ttt", key(1024))
}

func TestIndexKeysThatAreEmptyOrLargeAreRefused(t *testing.T) {
	r := newRig(t)
	indexedByText(r)
	r.put("ttt", `{'pk':{'S':'a'},'g':{'S':'`+strings.Repeat("x", 2048)+`'},'s':{'S':'`+strings.Repeat("x", 1024)+`'}}`)
	put := func(fields string) string { return `{'TableName':'ttt','Item':{'pk':{'S':'b'},` + fields + `}}` }
	text := func(name string, n int) string { return `'` + name + `':{'S':'` + strings.Repeat("x", n) + `'}` }
	set := `'TableName':'ttt','Key':{'pk':{'S':'a'}},'UpdateExpression':'SET g = :v',
		'ExpressionAttributeValues':{':v':{'S':'`
	const moto = "https://github.com/getmoto/moto/blob/master/tests/test_dynamodb/exceptions/test_key_length_exceptions.py"
	r.refuses(t, []refusal{
		{"large partition key", "PutItem", put(text("g", 2049)), "ValidationException", largeHash,
			scylla + "test_gsi.py: test_gsi_limit_partition_key_len_2048"},
		{"large sort key", "PutItem", put(text("s", 1025)), "ValidationException", largeRange, moto},
		{"large in a batch", "BatchWriteItem", `{'RequestItems':{'ttt':[{'PutRequest':{'Item':{'pk':{'S':'b'},` +
			text("s", 1025) + `}}}]}}`, "ValidationException", largeRange, moto},
		{"large by an update", "UpdateItem", `{` + set + strings.Repeat("x", 2049) + `'}}}`, "ValidationException", largeHash,
			moto},
		{"empty", "PutItem", put(text("g", 0)), "ValidationException", emptyOnPut, dynoxide},
		{"empty by an update", "UpdateItem", `{` + set + `'}}}`, "ValidationException", emptyOnUpdate, dynoxide},
		{"empty in a transaction", "TransactWriteItems", `{'TransactItems':[
			{'Put':{'TableName':'ttt','Item':{'pk':{'N':'1'}}}},{'Put':` + put(text("g", 0)) + `}]}`, "ValidationException",
			emptyOnPut, "https://github.com/nubo-db/dynoxide/blob/main/src/actions/helpers.rs: run_index_key_validation"},
		{"empty by an update in a transaction", "TransactWriteItems", `{'TransactItems':[{'Update':{` + set + `'}}}}]}`,
			"ValidationException", emptyOnUpdate,
			"https://github.com/nubo-db/dynoxide/blob/main/src/actions/helpers.rs: run_index_key_validation"},
	})
	a := r.raw("TransactWriteItems", quotes(`{'TransactItems':[{'Put':{'TableName':'ttt','Item':{'pk':{'S':'b'},
		'g':{'N':'5'}}}}]}`))
	if a.Code != "TransactionCanceledException" || !strings.Contains(a.Body, "Type mismatch for Index Key g Expected: S "+
		"Actual: N IndexName: gsi") { // dynoxide: transact_put_rejects_bad_index_key
		t.Errorf("index key of a wrong type in a transaction: %s", a.Body)
	}
}

// TestNewIndexLeavesOutWhatItsKeyCannotHold: source: scylladb/scylladb,
// test/alternator/test_gsi_updatetable.py: test_gsi_backfill_key_limits and
// test_gsi_backfill_empty_string. An update that does not change such an attribute is not refused
// for it: dynoxide, update_unrelated_set_does_not_revalidate_legacy_bad_index_key.
func TestNewIndexLeavesOutWhatItsKeyCannotHold(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "S")
	for name, value := range map[string]string{"empty": "", "1024": strings.Repeat("x", 1024),
		"1025": strings.Repeat("x", 1025), "2048": strings.Repeat("x", 2048), "2049": strings.Repeat("x", 2049)} {
		r.put("ttt", `{'p':{'S':'`+name+`'},'c':{'S':'c'},'x':{'S':'`+value+`'}}`)
	}
	r.put("ttt", `{'p':{'S':'number'},'c':{'S':'c'},'x':{'N':'1'}}`) // awsGuide, GSI.OnlineOps.ViolationDetection.html
	r.put("ttt", `{'p':{'S':'none'},'c':{'S':'c'}}`)
	r.do("UpdateTable", `{'TableName':'ttt','AttributeDefinitions':[{'AttributeName':'x','AttributeType':'S'}],
		'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'byX','Projection':{'ProjectionType':'ALL'},
		'KeySchema':[{'AttributeName':'x','KeyType':'HASH'}]}}]}`)
	r.do("UpdateTable", `{'TableName':'ttt','AttributeDefinitions':[{'AttributeName':'x','AttributeType':'S'}],
		'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'byCX','Projection':{'ProjectionType':'ALL'},
		'KeySchema':[{'AttributeName':'c','KeyType':'HASH'},{'AttributeName':'x','KeyType':'RANGE'}]}}]}`)
	for index, want := range map[string]string{"byX": `"Count":3,`, "byCX": `"Count":1,`} {
		if got := r.do("Scan", `{'TableName':'ttt','IndexName':'`+index+`','Select':'COUNT'}`); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", index, got, want)
		}
	}
	r.do("UpdateItem", `{'TableName':'ttt','Key':{'p':{'S':'2049'},'c':{'S':'c'}},'UpdateExpression':'SET y = :y',
		'ExpressionAttributeValues':{':y':{'S':'y'}}}`)
}

func TestProjectionsThatTheServiceRefuses(t *testing.T) {
	r := newRig(t)
	create := func(names string) string {
		names = `'INCLUDE','NonKeyAttributes':[` + names + `]`
		return strings.Replace(withIndex("new", "INCLUDE", "g:HASH"), `'INCLUDE'`, names, 1)
	}
	long := strings.Repeat("x", 256)
	r.refuses(t, []refusal{
		{"one twice", "CreateTable", create(`'a','b','a'`), "ValidationException",
			"One or more parameter values were invalid: Duplicate element in NonKeyAttributes: a", ackLab + "DDB-TABLE-126"},
		{"long name", "CreateTable", create(`'` + long + `'`), "ValidationException", "1 validation error detected: Value '" +
			long + "' at 'globalSecondaryIndexes.1.member.projection.nonKeyAttributes.1.member' failed to satisfy " +
			"constraint: Member must have length less than or equal to 255",
			scylla + "test_limits.py: test_limit_attribute_length_gsi_lsi_projection_bad; " + awsAPI + "API_Projection.html"},
		{"21 names", "CreateTable", create(strings.TrimSuffix(strings.Repeat("'a',", 21), ",")), "ValidationException",
			"1 validation error detected: Value '[" + strings.TrimSuffix(strings.Repeat("a, ", 21), ", ") + "]' at " +
				"'globalSecondaryIndexes.1.member.projection.nonKeyAttributes' failed to satisfy constraint: Member must " +
				"have length less than or equal to 20", ackLab + "DDB-TABLE-126"},
		{"long key attribute", "CreateTable", strings.ReplaceAll(withIndex("new", "ALL", "LONG:HASH"), "LONG", long),
			"ValidationException", "2 validation errors detected: Value '" + long + "' at " +
				"'attributeDefinitions.2.member.attributeName' failed to satisfy constraint: Member must have length less " +
				"than or equal to 255; Value '" + long + "' at " +
				"'globalSecondaryIndexes.1.member.keySchema.1.member.attributeName' failed to satisfy constraint: Member " +
				"must have length less than or equal to 255", scylla + "test_limits.py: test_limit_attribute_length_gsi_lsi_bad"},
	})
}

// TestOrderInWhichQueriesAreJudged sends queries with two faults, and start keys of other
// partitions. Table ttt has a global index gsi by g and s that projects the keys only.
func TestOrderInWhichQueriesAreJudged(t *testing.T) {
	r := newRig(t)
	r.do("CreateTable", withIndex("ttt", "KEYS_ONLY", "g:HASH", "s:RANGE"))
	const (
		dynalite = "https://github.com/architect/dynalite/blob/main/test/query.js: "
		invalid  = "One or more parameter values were invalid: "
	)
	query := func(condition, more string) string {
		return `{'TableName':'ttt','IndexName':'gsi','KeyConditionExpression':'` + condition + `',
			'ExpressionAttributeValues':{':a':{'S':'a'}}` + more + `}`
	}
	scan := func(more string) string { return `{'TableName':'ttt','IndexName':'gsi'` + more + `}` }
	start := func(pk, g, s string) string {
		return `,'ExclusiveStartKey':{'pk':` + pk + `,'g':` + g + `,'s':` + s + `}`
	}
	a, b, n := `{'S':'a'}`, `{'S':'b'}`, `{'N':'1'}`
	r.refuses(t, []refusal{
		{"QueryFilter before AttributesToGet", "Query", `{'TableName':'none','QueryFilter':{'a':{'ComparisonOperator':'EQ',
			'AttributeValueList':[{}]}},'AttributesToGet':['a','a']}`, "ValidationException",
			"Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
			dynalite + "bad attribute values in QueryFilter"},
		{"empty key condition before an empty filter", "Query", `{'TableName':'none','KeyConditionExpression':'',
			'FilterExpression':'','ProjectionExpression':''}`, "ValidationException",
			"Invalid KeyConditionExpression: The expression can not be empty;", dynalite + "empty KeyConditionExpression"},
		{"names before an empty key condition", "Query", `{'TableName':'none','KeyConditionExpression':'',
			'ExpressionAttributeNames':{},'ExpressionAttributeValues':{}}`, "ValidationException",
			"ExpressionAttributeNames must not be empty", dynalite + "empty ExpressionAttributeNames"},
		{"of a Scan AttributesToGet first", "Scan", `{'TableName':'none','AttributesToGet':['a','a'],
			'ScanFilter':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}}}`, "ValidationException",
			invalid + "Duplicate value in attribute name: a",
			strings.ReplaceAll(dynalite, "query", "scan") + "duplicate values in AttributesToGet"},
		{"of a Scan the index before the table", "Scan", scan(start(n, a, n)), "ValidationException",
			"The provided key element does not match the schema",
			strings.ReplaceAll(dynalite, "query", "scan") +
				"if ExclusiveStartKey does not match schema for global compound index"},
		{"of a Scan all attributes before the table", "Scan", scan(start(n, a, a) + `,'Select':'ALL_ATTRIBUTES'`),
			"ValidationException", invalid + "Select type ALL_ATTRIBUTES is not supported for global secondary index gsi " +
				"because its projection type is not ALL", "https://github.com/architect/dynalite/blob/main/actions/scan.js"},
		{"of a Scan the table", "Scan", scan(start(n, a, a)), "ValidationException",
			"The provided starting key is invalid: The provided key element does not match the schema",
			strings.ReplaceAll(dynalite, "query", "scan") + "if global range in ExclusiveStartKey but bad in query"},
		{"projection before the key condition", "Query", `{'TableName':'none','ProjectionExpression':'',
			'KeyConditionExpression':'attribute_type(a, :a)','ExpressionAttributeValues':{':a':{'S':'N'}}}`,
			"ValidationException", "Invalid ProjectionExpression: The expression can not be empty;",
			dynalite + "empty ProjectionExpression"},
		{"condition of the partition before the sort key of the start", "Query", query("s = :a", start(a, a, n)),
			"ValidationException", "Query condition missed key schema element: g",
			dynalite + "if global hash in ExclusiveStartKey but not in query"},
		{"partition of the start before its condition", "Query", query("s = :a", start(a, n, a)), "ValidationException",
			"The provided key element does not match the schema",
			dynalite + "if ExclusiveStartKey does not match schema for global index"},
		{"index before the table", "Query", query("g = :a", start(n, a, a)), "ValidationException",
			"The provided starting key is invalid: The provided key element does not match the schema",
			dynalite + "if global hash in ExclusiveStartKey but bad in query"},
		{"start of another partition", "Query", query("g = :a", start(a, b, a)), "ValidationException",
			"The provided starting key is outside query boundaries based on provided conditions",
			scylla + "test_gsi.py: test_gsi_query_exclusivestartkey_wrong_partition"},
		{"start of another partition with the sort key", "Query", query("g = :a AND s = :a", start(a, b, a)),
			"ValidationException", "The query can return at most one row and cannot be restarted",
			scylla + "test_gsi.py: test_gsi_query_exclusivestartkey_wrong_partition"},
		{"conditions before what the index lacks", "Query", query("s = :a", `,'Select':'ALL_ATTRIBUTES'`),
			"ValidationException", "Query condition missed key schema element: g",
			dynalite + "ExclusiveStartKey with global index and missing part"},
		{"all of an index that lacks some", "Query", query("g = :a", `,'Select':'ALL_ATTRIBUTES'`), "ValidationException",
			invalid + "Select type ALL_ATTRIBUTES is not supported for global secondary index gsi because its projection " +
				"type is not ALL", dynalite + "specifying ALL_ATTRIBUTES when global index does not have ALL"},
		{"start in a table without a sort key", "Query", `{'TableName':'ttt','KeyConditionExpression':'pk = :a',
			'ExpressionAttributeValues':{':a':{'S':'a'}},'ExclusiveStartKey':{'pk':{'S':'a'}}}`, "ValidationException",
			"The provided exclusive start key is invalid: ExclusiveStartKey: {pk=AttributeValue: {S:a}}",
			scylla + "test_query.py: test_query_no_sort_key_exclusive_start_key"},
	})
}

func TestShardIdsThatTheServiceRefuses(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	arn, _, _, _ := r.stream.Describe("ttt")
	const length = "1 validation error detected: Value 'qwerty' at '%' failed to satisfy constraint: Member must have " +
		"length greater than or equal to 28"
	r.refuses(t, []refusal{
		{"filter", "DescribeStream", `{'StreamArn':'` + arn + `','ShardFilter':{'Type':'CHILD_SHARDS','ShardId':'qwerty'}}`,
			"ValidationException", strings.Replace(length, "%", "shardFilter.shardId", 1),
			scylla + "test_streams.py: test_stream_shard_filtering_wrong_shard_id; " + awsAPI + "API_streams_ShardFilter.html"},
		{"start", "DescribeStream", `{'StreamArn':'` + arn + `','ExclusiveStartShardId':'qwerty'}`, "ValidationException",
			strings.Replace(length, "%", "exclusiveStartShardId", 1), awsAPI + "API_streams_DescribeStream.html"},
		{"iterator", "GetShardIterator", `{'StreamArn':'` + arn + `','ShardId':'qwerty','ShardIteratorType':'LATEST'}`,
			"ValidationException", strings.Replace(length, "%", "shardId", 1), awsAPI + "API_streams_GetShardIterator.html"},
	})
}
