package dynamo_test

import "testing"

// TestEmptyAttributeNamesAreRefused: table ttt has the key p (S). The suite has no other text than
// "Empty attribute name" of the message.
func TestEmptyAttributeNamesAreRefused(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	const key = `'TableName':'ttt','Key':{'p':{'S':'a'}}`
	var all []refusal
	for name, c := range map[string]struct{ op, body string }{
		"item":        {"PutItem", `{'TableName':'ttt','Item':{'p':{'S':'a'},'':{'N':'1'}}}`},
		"nested":      {"PutItem", `{'TableName':'ttt','Item':{'p':{'S':'a'},'m':{'M':{'':{'N':'1'}}}}}`},
		"batch":       {"BatchWriteItem", `{'RequestItems':{'ttt':[{'PutRequest':{'Item':{'p':{'S':'a'},'':{'N':'1'}}}}]}}`},
		"transaction": {"TransactWriteItems", `{'TransactItems':[{'Put':{'TableName':'ttt','Item':{'p':{'S':'a'},'':{'N':'1'}}}}]}`},
		"to get":      {"GetItem", `{` + key + `,'AttributesToGet':['']}`},
		"updates":     {"UpdateItem", `{` + key + `,'AttributeUpdates':{'':{'Action':'DELETE'}}}`},
		"expected":    {"DeleteItem", `{` + key + `,'Expected':{'':{'Exists':false}}}`},
		"filter":      {"Scan", `{'TableName':'ttt','ScanFilter':{'':{'ComparisonOperator':'NULL'}}}`},
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
