package dynamo_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// indexed makes a provisioned table with a local index lll and a global one ggg.
func (r *rig) indexed(name string) {
	r.t.Helper()
	r.do("CreateTable", `{'TableName':'`+name+`','ProvisionedThroughput':{'ReadCapacityUnits':5,'WriteCapacityUnits':5},
		'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'},{'AttributeName':'c','AttributeType':'S'},
		{'AttributeName':'n','AttributeType':'N'}],
		'KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'c','KeyType':'RANGE'}],
		'LocalSecondaryIndexes':[{'IndexName':'lll','KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'n',
		'KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}],
		'GlobalSecondaryIndexes':[`+index("ggg", "c")+`]}`)
}

func index(name, key string) string {
	return `{'IndexName':'` + name + `','KeySchema':[{'AttributeName':'` + key + `','KeyType':'HASH'}],
		'Projection':{'ProjectionType':'ALL'},
		'ProvisionedThroughput':{'ReadCapacityUnits':5,'WriteCapacityUnits':5}}`
}

// TestUpdateTableShowsWhatIsUnderWay compares the answer to an update with what the table is
// afterwards.
func TestUpdateTableShowsWhatIsUnderWay(t *testing.T) {
	r := newRig(t)
	r.indexed("ttt")
	type throughput struct{ ReadCapacityUnits, WriteCapacityUnits int }
	type description struct {
		TableStatus           string
		ProvisionedThroughput struct {
			throughput
			LastIncreaseDateTime *float64
		}
		AttributeDefinitions   []struct{ AttributeName string }
		GlobalSecondaryIndexes []struct {
			IndexName, IndexStatus string
			ProvisionedThroughput  throughput
		}
	}
	update := func(body string) description {
		var out struct{ TableDescription description }
		r.decode(r.do("UpdateTable", `{'TableName':'ttt',`+body+`}`), &out)
		return out.TableDescription
	}
	describe := func() description {
		var out struct{ Table description }
		r.decode(r.do("DescribeTable", `{'TableName':'ttt'}`), &out)
		return out.Table
	}
	got := update(`'ProvisionedThroughput':{'ReadCapacityUnits':7,'WriteCapacityUnits':5}`)
	if got.TableStatus != "UPDATING" || got.ProvisionedThroughput.ReadCapacityUnits != 5 ||
		got.ProvisionedThroughput.LastIncreaseDateTime == nil {
		t.Errorf("while the capacity grows: %+v", got)
	}
	if got := describe(); got.TableStatus != "ACTIVE" || got.ProvisionedThroughput.ReadCapacityUnits != 7 {
		t.Errorf("after the capacity grew: %+v", got)
	}
	got = update(`'GlobalSecondaryIndexUpdates':[{'Update':{'IndexName':'ggg',
		'ProvisionedThroughput':{'ReadCapacityUnits':9,'WriteCapacityUnits':5}}},
		{'Create':` + index("new", "q") + `}],'AttributeDefinitions':[{'AttributeName':'q','AttributeType':'S'},
		{'AttributeName':'c','AttributeType':'S'}]`)
	if all := got.GlobalSecondaryIndexes; len(all) != 2 || all[0].IndexStatus != "UPDATING" ||
		all[0].ProvisionedThroughput.ReadCapacityUnits != 5 ||
		all[1].IndexName != "new" || all[1].IndexStatus != "CREATING" {
		t.Errorf("while an index changes and one comes: %+v", got)
	}
	if all := describe().GlobalSecondaryIndexes; len(all) != 2 || all[0].IndexStatus != "ACTIVE" ||
		all[0].ProvisionedThroughput.ReadCapacityUnits != 9 ||
		all[1].IndexStatus != "ACTIVE" {
		t.Errorf("after an index changed and one came: %+v", all)
	}
	got = update(`'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'new'}}]`)
	if all := got.GlobalSecondaryIndexes; len(all) != 2 || all[1].IndexStatus != "DELETING" {
		t.Errorf("while an index goes: %+v", got)
	}
	after := describe()
	if len(after.GlobalSecondaryIndexes) != 1 || len(after.AttributeDefinitions) != 3 {
		t.Errorf("after an index went: %+v", after)
	}
}

func TestDeleteTableTellsLessThanDescribeTable(t *testing.T) {
	r := newRig(t)
	r.indexed("ttt")
	var out struct{ TableDescription map[string]json.RawMessage }
	r.decode(r.do("DeleteTable", `{'TableName':'ttt'}`), &out)
	got := strings.Join(slices.Sorted(maps.Keys(out.TableDescription)), " ")
	want := "DeletionProtectionEnabled ItemCount ProvisionedThroughput TableArn TableId TableName TableSizeBytes " +
		"TableStatus"
	if got != want || string(out.TableDescription["TableStatus"]) != `"DELETING"` {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestUpdatesOfTablesThatTheServiceRefuses sends updates to a table with the indexes lll and ggg,
// none of which may change it. DDB-TABLE-… is a finding of ack-api-quirks, services/dynamodb, on
// the live API.
func TestUpdatesOfTablesThatTheServiceRefuses(t *testing.T) {
	r := newRig(t)
	r.indexed("ttt")
	before := r.do("DescribeTable", `{'TableName':'ttt'}`)
	const invalid = "One or more parameter values were invalid: "
	for name, c := range map[string]struct{ body, code, message string }{
		"two creates": {`'AttributeDefinitions':[{'AttributeName':'q','AttributeType':'S'}],
			'GlobalSecondaryIndexUpdates':[{'Create':` + index("one", "q") + `},{'Create':` + index("two", "q") + `}]`,
			"LimitExceededException", "Subscriber limit exceeded: Only 1 online index can be created or deleted " +
				"simultaneously per table"},
		"create and delete": {`'AttributeDefinitions':[{'AttributeName':'q','AttributeType':'S'}],
			'GlobalSecondaryIndexUpdates':[{'Create':` + index("one", "q") + `},{'Delete':{'IndexName':'ggg'}}]`,
			"LimitExceededException", "Subscriber limit exceeded: Only 1 online index can be created or deleted " +
				"simultaneously per table"},
		"two changes of one": {`'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'ggg'}},
			{'Update':{'IndexName':'ggg','ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':1}}}]`,
			"ValidationException", invalid +
				"Only one global secondary index update per index is allowed simultaneously. Index: ggg"},
		"empty list": {`'GlobalSecondaryIndexUpdates':[]`, "ValidationException",
			nothingToUpdate}, // DDB-TABLE-015
		"named as a local index": {`'GlobalSecondaryIndexUpdates':[{'Create':` + index("lll", "c") + `}]`,
			"ValidationException", "Attempting to create an index which already exists"}, // DDB-TABLE-137
		"local index deleted": {`'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'lll'}}]`, "ValidationException",
			"Cannot delete an index that is not a GlobalSecondaryIndex: lll"}, // DDB-TABLE-137
		"named as a global index": {`'GlobalSecondaryIndexUpdates':[{'Create':` + index("ggg", "c") + `}]`,
			"ValidationException", "Attempting to create an index which already exists"},
		"type redefined": {`'AttributeDefinitions':[{'AttributeName':'c','AttributeType':'N'}],
			'GlobalSecondaryIndexUpdates':[{'Create':` + index("one", "c") + `}]`,
			"ValidationException", invalid + "Attributes cannot be redefined. Please check that your attribute has the " +
				"same type as previously defined. Existing schema: Schema:[SchemaElement: key{p:S:HASH}, " +
				"SchemaElement: key{c:S:RANGE}] New schema: Schema:[SchemaElement: key{p:S:HASH}, " +
				"SchemaElement: key{c:N:RANGE}]"},
		"type redefined twice": {`'AttributeDefinitions':[{'AttributeName':'q','AttributeType':'N'},{'AttributeName':'q',
			'AttributeType':'S'}],'GlobalSecondaryIndexUpdates':[{'Create':` + index("one", "q") + `}]`,
			"ValidationException", "Attribute Name is duplicated: q"},
		"index as it is": {`'GlobalSecondaryIndexUpdates':[{'Update':{'IndexName':'ggg',
			'ProvisionedThroughput':{'ReadCapacityUnits':5,'WriteCapacityUnits':5}}}]`,
			"ValidationException", "The provisioned throughput for the index ggg will not change. The requested value equals " +
				"the current value. " +
				"Current ReadCapacityUnits provisioned for the index: 5. Requested ReadCapacityUnits: 5. " +
				"Current WriteCapacityUnits provisioned for the index: 5. Requested WriteCapacityUnits: 5. " +
				"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."},
		"no such index": {`'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'none'}}]`, "ResourceNotFoundException",
			"Requested resource not found: Index none for table ttt"}, // DDB-TABLE-380
	} {
		if a := r.raw("UpdateTable", quotes(`{'TableName':'ttt',`+c.body+`}`)); a.Code != c.code || a.Message != c.message {
			t.Errorf("%s:\ngot  %s: %s\nwant %s: %s", name, a.Code, a.Message, c.code, c.message)
		}
	}
	r.want(r.do("DescribeTable", `{'TableName':'ttt'}`), before)
}

// TestUpdateIgnoresDefinitionsThatNoNewIndexUses: source: ack-api-quirks, services/dynamodb,
// DDB-TABLE-162.
func TestUpdateIgnoresDefinitionsThatNoNewIndexUses(t *testing.T) {
	r := newRig(t)
	r.indexed("ttt")
	r.do("UpdateTable", `{'TableName':'ttt','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'N'}],
		'DeletionProtectionEnabled':true}`)
	r.do("UpdateTable", `{'TableName':'ttt','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'N'},
		{'AttributeName':'x','AttributeType':'S'}],'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'ggg'}}]}`)
	var out struct {
		Table struct {
			AttributeDefinitions []struct{ AttributeName, AttributeType string }
		}
	}
	if err := json.Unmarshal([]byte(r.do("DescribeTable", `{'TableName':'ttt'}`)), &out); err != nil {
		t.Fatal(err)
	}
	for _, a := range out.Table.AttributeDefinitions {
		if a.AttributeName == "x" || a.AttributeName == "p" && a.AttributeType != "S" {
			t.Errorf("definitions %v", out.Table.AttributeDefinitions)
		}
	}
}

// TestTwoKeysOfOneName: that the names are the same is said before that the second is no sort key.
func TestTwoKeysOfOneName(t *testing.T) {
	const dynalite = "https://github.com/architect/dynalite/blob/main/test/createTable.js: "
	create := func(first, second string) string {
		return `{'TableName':'new','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[
			{'AttributeName':'a','AttributeType':'S'},{'AttributeName':'b','AttributeType':'S'}],
			'KeySchema':[{'AttributeName':'a','KeyType':'HASH'},{'AttributeName':'` + first + `','KeyType':'` + second + `'}]}`
	}
	newRig(t).refuses(t, []refusal{
		{"two of the partition", "CreateTable", create("a", "HASH"), "ValidationException",
			"Both the Hash Key and the Range Key element in the KeySchema have the same name",
			dynalite + "hash key and range key having same name"},
		{"both kinds", "CreateTable", create("a", "RANGE"), "ValidationException",
			"Both the Hash Key and the Range Key element in the KeySchema have the same name",
			dynalite + "hash key and range key having same name"},
		{"two names", "CreateTable", create("b", "HASH"), "ValidationException",
			"Invalid KeySchema: The second KeySchemaElement is not a RANGE key type", dynalite + "second key not being range"},
	})
}
