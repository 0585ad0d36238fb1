package dynamo_test

import (
	"strings"
	"testing"
)

// TestWordsOfTheService: messages that once differed from the service's in a word or more. Table
// ttt has the key p (S).
func TestWordsOfTheService(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	const (
		invalid = "One or more parameter values were invalid: "
		failed  = "1 validation error detected: "
	)
	create := func(name, defs, keys, more string) string {
		return `{'TableName':'` + name + `','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[` + defs +
			`],'KeySchema':[` + keys + `]` + more + `}`
	}
	def := func(name, kind string) string {
		return `{'AttributeName':'` + name + `','AttributeType':'` + kind + `'}`
	}
	key := func(name, kind string) string {
		return `{'AttributeName':'` + name + `','KeyType':'` + kind + `'}`
	}
	r.refuses(t, []refusal{
		{"local index without a sort key", "CreateTable", create("new", def("p", "S")+","+def("l", "S"), key("p", "HASH"),
			`,'LocalSecondaryIndexes':[{'IndexName':'lll','Projection':{'ProjectionType':'ALL'},'KeySchema':[`+
				key("p", "HASH")+","+key("l", "RANGE")+`]}]`), "ValidationException",
			invalid + "Table KeySchema does not have a range key, which is required when specifying a " +
				"LocalSecondaryIndex", parity + "tier3/error-messages/createTable.test.ts"},
		{"two-letter table", "CreateTable", create("ab", def("p", "S"), key("p", "HASH"), ""), "ValidationException",
			failed + "Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or " +
				"equal to 3", parity + "tier3/error-messages/createTable.test.ts"},
		{"three key elements", "CreateTable", create("new", def("p", "S")+","+def("s", "S")+","+def("x", "S"),
			key("p", "HASH")+","+key("s", "RANGE")+","+key("x", "RANGE"), ""), "ValidationException",
			failed + "Value '[KeySchemaElement(attributeName=p, keyType=HASH), KeySchemaElement(attributeName=s, " +
				"keyType=RANGE), KeySchemaElement(attributeName=x, keyType=RANGE)]' at 'keySchema' failed to satisfy " +
				"constraint: Member must have length less than or equal to 2",
			parity + "tier3/error-messages/createTable.test.ts"},
		{"attribute defined twice", "CreateTable", create("new", def("p", "S")+","+def("p", "N"), key("p", "HASH"), ""),
			"ValidationException", "Attribute Name is duplicated: p", ackLab + "DDB-TABLE-127"},
		{"empty table name", "PutItem", `{'TableName':'','Item':{'p':{'S':'a'}}}`, "ValidationException",
			failed + "Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or " +
				"equal to 1", parity + "tier3/error-messages/putItem.test.ts"},
		{"read no batch", "BatchGetItem", `{'RequestItems':{}}`, "ValidationException",
			"The requestItems parameter is required for BatchGetItem", parity + "tier3/error-messages/batchGetItem.test.ts"},
		{"write no batch", "BatchWriteItem", `{'RequestItems':{}}`, "ValidationException",
			"The requestItems parameter is required for BatchWriteItem",
			parity + "tier3/error-messages/batchWriteItem.test.ts"},
		{"101 keys", "BatchGetItem", `{'RequestItems':{'ttt':{'Keys':[` +
			strings.TrimSuffix(strings.Repeat(`{'p':{'S':'a'}},`, 101), ",") + `]}}}`, "ValidationException",
			failed + "Value at 'RequestItems.ttt.member.Keys' failed to satisfy constraint: Member must have length " +
				"less than or equal to 100", parity + "tier3/error-messages/batchGetItem.test.ts"},
		{"query of nothing", "Query", `{'TableName':'ttt','Limit':0,'KeyConditionExpression':'p = :p',
			'ExpressionAttributeValues':{':p':{'S':'a'}}}`, "ValidationException",
			failed + "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
			parity + "tier3/error-messages/query.test.ts"},
		{"scan of nothing", "Scan", `{'TableName':'ttt','Limit':0}`, "ValidationException",
			failed + "Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
			parity + "tier3/error-messages/scan.test.ts"},
		{"projection of 33 levels", "GetItem", `{'TableName':'ttt','Key':{'p':{'S':'a'}},'ProjectionExpression':'a` +
			strings.Repeat(".b", 32) + `'}`, "ValidationException", "Invalid ProjectionExpression: The document path has " +
			"too many nesting levels; nesting levels: 33", scylla + "test_projection_expression.py"},
	})
}
