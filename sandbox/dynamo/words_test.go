package dynamo_test

import "testing"

// TestWordsOfTheService: messages that once differed from the service's in a word or more. Table
// ttt has the key p (S).
func TestWordsOfTheService(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	const invalid = "One or more parameter values were invalid: "
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
	})
}
