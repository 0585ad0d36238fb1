package request_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
)

// parse reads JSON in which ' stands for ".
func parse(t *testing.T, text string) *wire.Node {
	t.Helper()
	n, err := wire.Parse(strings.ReplaceAll(text, "'", `"`))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func decode(t *testing.T, text string) attr.Map {
	t.Helper()
	item, err := attr.DecodeMap(parse(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return item
}

// wantMessage compares an error's message; "" is no error.
func wantMessage(t *testing.T, err *wire.Error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Message
	}
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

const badValue = "One or more parameter values were invalid: "

// update is what UpdateItem passes to CheckStyles, get what GetItem does, scan what Scan does.
var (
	update = [2][]string{{"UpdateExpression", "ConditionExpression"},
		{"AttributeUpdates", "Expected", "ConditionalOperator"}}
	get  = [2][]string{{"ProjectionExpression"}, {"AttributesToGet"}}
	scan = [2][]string{{"ProjectionExpression", "FilterExpression"},
		{"AttributesToGet", "ScanFilter", "ConditionalOperator"}}
)

func TestStylesOfParametersDoNotMix(t *testing.T) {
	for name, c := range map[string]struct {
		styles     [2][]string
		body, want string
	}{
		"none":        {update, `{}`, ""},
		"expressions": {update, `{'UpdateExpression':'x','ExpressionAttributeNames':{},'ExpressionAttributeValues':{}}`, ""},
		"legacy":      {update, `{'AttributeUpdates':{},'Expected':{'a':{}},'ConditionalOperator':'OR'}`, ""},
		"both": {update, `{'UpdateExpression':'x','Expected':{},'AttributeUpdates':{}}`,
			"Can not use both expression and non-expression parameters in the same request: " +
				"Non-expression parameters: {AttributeUpdates, Expected} Expression parameters: {UpdateExpression}"},
		"null is not sent": {update, `{'UpdateExpression':'x','Expected':null}`, ""},
		"operator alone": {update, `{'AttributeUpdates':{},'ConditionalOperator':'OR'}`,
			"ConditionalOperator cannot be used without Filter or Expected"},
		"operator of an empty filter": {scan, `{'ScanFilter':{},'ConditionalOperator':'OR'}`,
			"ConditionalOperator cannot be used without Filter or Expected"},
		"names alone": {get, `{'ExpressionAttributeNames':{'#a':'a'}}`,
			"ExpressionAttributeNames can only be specified when using expressions"},
		"values alone": {update, `{'ExpressionAttributeValues':{':a':{'S':'a'}}}`,
			"ExpressionAttributeValues can only be specified when using expressions: " +
				"UpdateExpression and ConditionExpression are null"},
		// A projection takes names and no values.
		"values of a projection": {scan, `{'ProjectionExpression':'a','ExpressionAttributeValues':{':a':{'S':'a'}}}`,
			"ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null"},
	} {
		t.Run(name, func(t *testing.T) {
			wantMessage(t, request.CheckStyles(parse(t, c.body), c.styles[0], c.styles[1]), c.want)
		})
	}
}

func TestExpressionsAreParsedTogether(t *testing.T) {
	p, err := request.Parse(parse(t, `{'UpdateExpression':'SET #a = :v','ConditionExpression':'attribute_exists(#a)',
		'ExpressionAttributeNames':{'#a':'alpha'},'ExpressionAttributeValues':{':v':{'N':'1'}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !p.Update.Touches("alpha") || !p.Condition.Heads()["alpha"] ||
		p.Filter != nil || p.Keys != nil || p.Projection != nil {
		t.Errorf("parsed %+v", p)
	}
	if p, err := request.Parse(parse(t, `{'TableName':'T'}`)); err != nil || p.Condition != nil || p.Update != nil {
		t.Errorf("no expressions: %+v, %v", p, err)
	}
	for name, c := range map[string]struct{ body, want string }{
		"unused name": {`{'ProjectionExpression':'a','ExpressionAttributeNames':{'#b':'b'}}`,
			"Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}"},
		"unused value": {`{'FilterExpression':'a = :a','ExpressionAttributeValues':{':a':{'S':''},':b':{'S':''}}}`,
			"Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}"},
		"a name used by any expression": {`{'FilterExpression':'#a = #b','ProjectionExpression':'#a',
			'ExpressionAttributeNames':{'#a':'a','#b':'b'}}`, ""},
		// Of two wrong expressions the service reports the filter before the key condition.
		"order": {`{'KeyConditionExpression':'a','FilterExpression':''}`,
			"Invalid FilterExpression: The expression can not be empty;"},
		// But an empty key condition before all. Source: architect/dynalite, test/query.js.
		"empty key condition": {`{'KeyConditionExpression':'','FilterExpression':''}`,
			"Invalid KeyConditionExpression: The expression can not be empty;"},
		"empty names": {`{'ExpressionAttributeNames':{},'ProjectionExpression':'a'}`,
			"ExpressionAttributeNames must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := request.Parse(parse(t, c.body))
			wantMessage(t, err, c.want)
		})
	}
}

func TestProjectionInEitherStyle(t *testing.T) {
	item := decode(t, `{'a':{'N':'1'},'b':{'M':{'c':{'N':'2'},'d':{'N':'3'}}},'e':{'NULL':true}}`)
	for name, c := range map[string]struct{ body, want string }{
		"all":        {`{}`, ""},
		"expression": {`{'ProjectionExpression':'b.c, e'}`, `{'b':{'M':{'c':{'N':'2'}}},'e':{'NULL':true}}`},
		"legacy":     {`{'AttributesToGet':['e','a','x']}`, `{'a':{'N':'1'},'e':{'NULL':true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := request.Projection(parse(t, c.body))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if p != nil {
				got = strings.ReplaceAll(string(p.Of(item).AppendJSON(nil)), `"`, "'")
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct{ body, want string }{
		"twice": {`{'AttributesToGet':['a','b','a']}`, badValue + "Duplicate value in attribute name: a"},
		"both": {`{'AttributesToGet':['a'],'ProjectionExpression':'a'}`, "Can not use both expression and non-expression " +
			"parameters in the same request: Non-expression parameters: {AttributesToGet} " +
			"Expression parameters: {ProjectionExpression}"},
		"long name": {`{'AttributesToGet':['` + strings.Repeat("a", 65536) + `']}`,
			"Attribute name is too large, must be less than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := request.Projection(parse(t, c.body))
			wantMessage(t, err, c.want)
		})
	}
}

// TestItemsOfMoreThan400KBAreRefused: names count, and an update has words of its own.
func TestItemsOfMoreThan400KBAreRefused(t *testing.T) {
	sized := func(bytes int) attr.Map {
		return attr.Map{{Name: "ab", Value: attr.Value{Kind: attr.S, Str: strings.Repeat("x", bytes-2)}}}
	}
	const limit = 400 << 10
	wantMessage(t, request.CheckSize(sized(limit)), "")
	wantMessage(t, request.CheckSize(sized(limit+1)), "Item size has exceeded the maximum allowed size")
	wantMessage(t, request.CheckUpdated(sized(limit)), "")
	wantMessage(t, request.CheckUpdated(sized(limit+1)), "Item size to update has exceeded the maximum allowed size")
	nested := func(levels int) attr.Map {
		v := attr.Number("1")
		for range levels {
			v = attr.Value{Kind: attr.L, List: []attr.Value{v}}
		}
		return attr.Map{{Name: "a", Value: v}}
	}
	wantMessage(t, request.CheckUpdated(nested(32)), "")
	wantMessage(t, request.CheckUpdated(nested(33)),
		"Nesting Levels have exceeded supported limits: Attributes nested beyond 32 levels are not supported")
}

// Source of the sizes of units:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
func TestCapacityUnits(t *testing.T) {
	for _, c := range []struct {
		size             int
		consistent, read float64
	}{{0, 1, 0.5}, {1, 1, 0.5}, {4096, 1, 0.5}, {4097, 2, 1}, {1 << 20, 256, 128}} {
		want, got := [2]float64{c.consistent, c.read}, [2]float64{request.ReadUnits(c.size, true),
			request.ReadUnits(c.size, false)}
		if got != want {
			t.Errorf("a read of %d bytes: %v units, want %v", c.size, got, want)
		}
	}
	for _, c := range []struct {
		before, after int
		want          float64
	}{{0, 0, 1}, {0, 1024, 1}, {0, 1025, 2}, {5000, 1, 5}, {1, 5000, 5}} {
		if got := request.WriteUnits(c.before, c.after); got != c.want {
			t.Errorf("a write from %d to %d bytes: %v units, want %v", c.before, c.after, got, c.want)
		}
	}
}

func TestConsumedCapacityIsReportedAsAskedFor(t *testing.T) {
	one := func(transact string) *request.Bill {
		b := &request.Bill{Transact: transact}
		b.Add("Tab", 1.5)
		b.Add("Tab", 2)
		return b
	}
	several := one("")
	several.Add("Another", 1)
	for name, c := range map[string]struct{ got, want string }{
		"not asked": {string(one("").AppendOne([]byte("{"), parse(t, `{}`))), "{"},
		"none":      {string(one("").AppendOne([]byte("{"), parse(t, `{'ReturnConsumedCapacity':'NONE'}`))), "{"},
		"total": {string(one("").AppendOne([]byte("{"), parse(t, `{'ReturnConsumedCapacity':'TOTAL'}`))),
			`{'ConsumedCapacity':{'TableName':'Tab','CapacityUnits':3.5}`},
		"indexes": {string(one("").AppendOne([]byte("{"), parse(t, `{'ReturnConsumedCapacity':'INDEXES'}`))),
			`{'ConsumedCapacity':{'TableName':'Tab','CapacityUnits':3.5,'Table':{'CapacityUnits':3.5}}`},
		"transaction": {string(one("Write").AppendAll([]byte("{"), parse(t, `{'ReturnConsumedCapacity':'TOTAL'}`))),
			`{'ConsumedCapacity':[{'TableName':'Tab','CapacityUnits':3.5,'WriteCapacityUnits':3.5}]`},
		"several tables": {string(several.AppendAll([]byte("{"), parse(t, `{'ReturnConsumedCapacity':'TOTAL'}`))),
			`{'ConsumedCapacity':[{'TableName':'Another','CapacityUnits':1},{'TableName':'Tab','CapacityUnits':3.5}]`},
	} {
		if got := strings.ReplaceAll(c.got, `"`, "'"); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// shapes are the operations with the shapes of their requests.
var shapes = map[string]*wire.Shape{
	"PutItem": request.PutItem, "GetItem": request.GetItem,
	"UpdateItem": request.UpdateItem, "DeleteItem": request.DeleteItem,
	"Query": request.Query, "Scan": request.Scan,
	"BatchGetItem": request.BatchGetItem, "BatchWriteItem": request.BatchWriteItem,
	"TransactWriteItems": request.TransactWriteItems, "TransactGetItems": request.TransactGetItems,
	"CreateTable": request.CreateTable, "UpdateTable": request.UpdateTable, "ListTables": request.ListTables,
	"UpdateTimeToLive": request.UpdateTimeToLive, "TagResource": request.TagResource,
}

// TestShapesOfRequests holds each operation to what its API reference documents: required members,
// value sets, limits.
func TestShapesOfRequests(t *testing.T) {
	const one = "1 validation error detected: "
	failed := func(value, at, rule string) string {
		return "Value " + value + " at '" + at + "' failed to satisfy constraint: " + rule
	}
	long := strings.Repeat("a", 256)
	list := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	for name, c := range map[string]struct{ op, body, want string }{
		"minimal put": {"PutItem", `{'TableName':'Tab','Item':{}}`, ""},
		"empty put": {"PutItem", `{}`, "2 validation errors detected: " +
			failed("null", "tableName", "Member must not be null") + "; " + failed("null", "item", "Member must not be null")},
		"return values": {"PutItem", `{'TableName':'Tab','Item':{},'ReturnValues':'SOME'}`, one + failed("'SOME'",
			"returnValues", "Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]")},
		"short name": {"GetItem", `{'TableName':'Ta','Key':{}}`, one + failed("'Ta'", "tableName",
			"Member must have length greater than or equal to 3")},
		"long name": {"GetItem", `{'TableName':'` + long + `','Key':{}}`, one + failed("'"+long+"'", "tableName",
			"Member must have length less than or equal to 255")},
		"odd name": {"GetItem", `{'TableName':'a b c','Key':{}}`, one + failed("'a b c'", "tableName",
			"Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")},
		"attributes to get": {"GetItem", `{'TableName':'Tab','Key':{},'AttributesToGet':[]}`, one + failed("'[]'",
			"attributesToGet", "Member must have length greater than or equal to 1")},
		"limit": {"Query", `{'TableName':'Tab','Limit':0}`, one + "Value at 'Limit' failed to " +
			"satisfy constraint: Member must have value greater than or equal to 1"},
		"scan limit": {"Scan", `{'TableName':'Tab','Limit':0}`, one + failed("'0'", "limit",
			"Member must have value greater than or equal to 1")},
		"empty name": {"PutItem", `{'TableName':'','Item':{}}`, one + failed("''", "tableName",
			"Member must have length greater than or equal to 1")},
		"segments": {"Scan", `{'TableName':'Tab','Segment':-1,'TotalSegments':0}`, "2 validation errors detected: " +
			failed("'0'", "totalSegments", "Member must have value greater than or equal to 1") + "; " +
			failed("'-1'", "segment", "Member must have value greater than or equal to 0")},
		"segment": {"Scan", `{'TableName':'Tab','Segment':1000000,'TotalSegments':1000000}`, one + failed("'1000000'",
			"segment", "Member must have value less than or equal to 999999")},
		"comparison": {"Scan", `{'TableName':'Tab','ScanFilter':{'a':{}}}`, one + failed("null",
			"scanFilter.a.member.comparisonOperator", "Member must not be null")},
		"100 keys": {"BatchGetItem", `{'RequestItems':{'Tab':{'Keys':` + list(100, `{}`) + `}}}`, ""},
		"101 keys": {"BatchGetItem", `{'RequestItems':{'Tab':{'Keys':` + list(101, `{}`) + `}}}`, one + "Value at " +
			"'RequestItems.Tab.member.Keys' failed to satisfy constraint: Member must have length less than or equal to 100"},
		"100 actions": {"TransactWriteItems", `{'TransactItems':` + list(100, `{}`) + `}`, ""},
		"no actions": {"TransactWriteItems", `{'TransactItems':[]}`, one + failed("'[]'", "transactItems",
			"Member must have length greater than or equal to 1")},
		"token": {"TransactWriteItems", `{'TransactItems':[{}],'ClientRequestToken':'` + long[:37] + `'}`, one + failed(
			"'"+long[:37]+"'", "clientRequestToken", "Member must have length less than or equal to 36")},
		"get without table": {"TransactGetItems", `{'TransactItems':[{'Get':{'Key':{}}}]}`, one + failed("null",
			"transactItems.1.member.get.tableName", "Member must not be null")},
		"table name": {"CreateTable", `{}`, "The parameter 'TableName' is required but was not present in the request"},
		"three keys": {"CreateTable", `{'TableName':'Tab','AttributeDefinitions':[],'KeySchema':` +
			list(3, `{'AttributeName':'a','KeyType':'HASH'}`) + `}`, one + failed("'["+strings.TrimSuffix(
			strings.Repeat("KeySchemaElement(attributeName=a, keyType=HASH), ", 3), ", ")+"]'", "keySchema",
			"Member must have length less than or equal to 2")},
		"capacity": {"CreateTable", `{'TableName':'Tab','AttributeDefinitions':[],
			'KeySchema':[{'AttributeName':'a','KeyType':'HASH'}],
			'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':0}}`, one + failed("'0'",
			"provisionedThroughput.writeCapacityUnits", "Member must have value greater than or equal to 1")},
		"101 tables": {"ListTables", `{'Limit':101}`, one + failed("'101'", "limit",
			"Member must have value less than or equal to 100")},
		"time to live": {"UpdateTimeToLive", `{'TableName':'Tab','TimeToLiveSpecification':{'AttributeName':''}}`,
			"2 validation errors detected: " + failed("''", "timeToLiveSpecification.attributeName",
				"Member must have length greater than or equal to 1") + "; " +
				failed("null", "timeToLiveSpecification.enabled", "Member must not be null")},

		// Wrong JSON types, found before anything else.
		"number for text": {"PutItem", `{'TableName':7}`, "NUMBER_VALUE cannot be converted to String"},
		"text for number": {"Query", `{'Limit':'1'}`, "STRING_VALUE cannot be converted to Integer"},
		"text for long": {"CreateTable", `{'ProvisionedThroughput':{'ReadCapacityUnits':'1'}}`,
			"STRING_VALUE cannot be converted to Long"},
		"text for boolean": {"GetItem", `{'ConsistentRead':'perhaps'}`, "Unexpected token received from parser"},
		"list for map": {"PutItem", `{'Item':[]}`, "Unrecognized collection type " +
			"java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		"map for list":     {"GetItem", `{'AttributesToGet':{}}`, "Start of structure or map found where not expected"},
		"text for value":   {"PutItem", `{'Item':{'a':'text'}}`, "Unexpected value type in payload"},
		"list of requests": {"PutItem", `[]`, "Unexpected value type in payload"},
	} {
		t.Run(name, func(t *testing.T) {
			wantMessage(t, shapes[c.op].Check(parse(t, c.body), attr.CheckShape), c.want)
		})
	}
}

// TestAtMostTenViolationsAreListed: the service stops there.
func TestAtMostTenViolationsAreListed(t *testing.T) {
	var gets []string
	for range 12 {
		gets = append(gets, `{'Get':{'Key':{}}}`)
	}
	err := request.TransactGetItems.Check(parse(t, `{'TransactItems':[`+strings.Join(gets, ",")+`]}`), attr.CheckShape)
	if err == nil {
		t.Fatal("not refused")
	}
	if !strings.HasPrefix(err.Message, "10 validation errors detected: ") || strings.Count(err.Message, "; ") != 9 {
		t.Error(err.Message)
	}
}

func TestPresentFieldsKeepTheOrderAskedFor(t *testing.T) {
	n := parse(t, `{'b':1,'a':false,'c':null}`)
	if diff := cmp.Diff([]string{"a", "b"}, request.Present(n, []string{"a", "b", "c", "d"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
