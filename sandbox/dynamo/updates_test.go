package dynamo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// onDemand makes a table on demand with the global indexes ggg and hhh.
func (r *rig) onDemand(name string) {
	r.t.Helper()
	r.do("CreateTable", `{'TableName':'`+name+`','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[
		{'AttributeName':'p','AttributeType':'S'},{'AttributeName':'c','AttributeType':'S'}],
		'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],
		'GlobalSecondaryIndexes':[`+freeIndex("ggg", "c")+`,`+freeIndex("hhh", "c")+`]}`)
}

// freeIndex is an index without a capacity.
func freeIndex(name, key string) string {
	return `{'IndexName':'` + name + `','KeySchema':[{'AttributeName':'` + key + `','KeyType':'HASH'}],
		'Projection':{'ProjectionType':'ALL'}}`
}

const (
	notValid = "One or more parameter values were invalid: "
	sevens   = `'ProvisionedThroughput':{'ReadCapacityUnits':7,'WriteCapacityUnits':7}`
	newAttr  = `'AttributeDefinitions':[{'AttributeName':'q','AttributeType':'S'}]`
	streamOn = `'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_IMAGE'}`
)

// TestCapacityOfIndexesIsJudgedAsTheServiceDoes has tables with a capacity and on demand: an index
// has a capacity as its table has one.
func TestCapacityOfIndexesIsJudgedAsTheServiceDoes(t *testing.T) {
	r := newRig(t)
	r.indexed("ttt")
	r.onDemand("ddd")
	twenty := `{'TableName':'many','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[
		{'AttributeName':'p','AttributeType':'S'}],'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],
		'GlobalSecondaryIndexes':[`
	for i := range 20 {
		twenty += freeIndex(fmt.Sprintf("g%02d", i), "p") + ","
	}
	r.do("CreateTable", strings.TrimSuffix(twenty, ",")+"]}")
	create := func(table, ix string) string {
		return `{'TableName':'` + table + `',` + newAttr + `,'GlobalSecondaryIndexUpdates':[{'Create':` + ix + `}]}`
	}
	r.refuses(t, []refusal{
		{"none at creation", "CreateTable", `{'TableName':'new',` + sevens + `,'AttributeDefinitions':[
			{'AttributeName':'p','AttributeType':'S'}],'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],
			'GlobalSecondaryIndexes':[` + freeIndex("ggg", "p") + `]}`, "ValidationException",
			notValid + "ProvisionedThroughput is not specified for index: ggg", ackLab + "DDB-TABLE-128"},
		{"none of a new index", "UpdateTable", create("ttt", freeIndex("new", "q")), "ValidationException",
			notValid + "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: new",
			ackLab + "DDB-TABLE-152"},
		{"of a new index on demand", "UpdateTable", create("ddd", index("new", "q")), "ValidationException",
			notValid + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: new when " +
				"BillingMode is PAY_PER_REQUEST", ackLab + "DDB-TABLE-442"},
		{"of an index on demand", "UpdateTable", `{'TableName':'ddd','GlobalSecondaryIndexUpdates':[{'Update':
			{'IndexName':'ggg',` + sevens + `}}]}`, "ValidationException",
			notValid + "The only Updates for index: ggg when TableThroughputMode is PAY_PER_REQUEST can be to " +
				"OnDemandThroughput, WarmThroughput", ackLab + "DDB-TABLE-152"},
		{"billing alone", "UpdateTable", `{'TableName':'ttt','BillingMode':'PROVISIONED'}`, "ValidationException",
			notValid + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
			ackLab + "DDB-TABLE-164"},
		{"of the table alone", "UpdateTable", `{'TableName':'ddd','BillingMode':'PROVISIONED',` + sevens + `}`,
			"ValidationException", notValid + "ProvisionedThroughput must be specified for index: ggg,hhh",
			ackLab + "DDB-TABLE-152; https://github.com/architect/dynalite/blob/main/test/updateTable.js"},
		{"index 21", "UpdateTable", create("many", freeIndex("new", "q")), "LimitExceededException",
			"Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20",
			ackLab + "DDB-TABLE-169"},
	})
	shown := r.do("UpdateTable", `{'TableName':'ddd','BillingMode':'PROVISIONED',`+sevens+`,
		'GlobalSecondaryIndexUpdates':[{'Update':{'IndexName':'ggg',`+sevens+`}},
		{'Update':{'IndexName':'hhh',`+sevens+`}}]}`)
	if n := strings.Count(shown, `"ReadCapacityUnits":7`); n != 3 {
		t.Errorf("the answer to a switch of the billing shows the capacity %d times, want 3: %s", n, shown)
	}
	r.do("UpdateTable", `{'TableName':'ddd','BillingMode':'PAY_PER_REQUEST'}`)
	shown = r.do("DescribeTable", `{'TableName':'ddd'}`) // DDB-TABLE-133
	if n := strings.Count(shown, `"ReadCapacityUnits":0`); n != 3 {
		t.Errorf("on demand again, the table shows no capacity %d times, want 3: %s", n, shown)
	}
}

// TestUpdateTableMakesOneChangeAtATime: none of the requests may change anything.
func TestUpdateTableMakesOneChangeAtATime(t *testing.T) {
	r := newRig(t)
	r.indexed("ttt")
	before := r.do("DescribeTable", `{'TableName':'ttt'}`)
	invalid := func(name, fields, message, finding string) refusal {
		return refusal{name, "UpdateTable", `{'TableName':'ttt',` + fields + `}`, "ValidationException",
			notValid + message, ackLab + finding}
	}
	online := newAttr + `,'GlobalSecondaryIndexUpdates':[{'Create':` + index("new", "q") + `}],`
	dropped := `'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'ggg'}}],`
	r.refuses(t, []refusal{
		invalid("protection and encryption", `'DeletionProtectionEnabled':true,'SSESpecification':{'Enabled':true}`,
			"Server-Side Encryption modification must be the only operation in the request", "DDB-TABLE-433"),
		invalid("protection and class", `'DeletionProtectionEnabled':true,'TableClass':'STANDARD'`,
			"TableClass modification must be the only operation in the request", "DDB-TABLE-433"),
		invalid("protection and capacity", `'DeletionProtectionEnabled':true,`+sevens,
			"DeletionProtection modification must be the only operation in the request", "DDB-TABLE-433"),
		invalid("protection and a new index", online+`'DeletionProtectionEnabled':true`,
			"DeletionProtection modification must be the only operation in the request", "DDB-TABLE-174"),
		invalid("warm and capacity", `'WarmThroughput':{'ReadUnitsPerSecond':12000},`+sevens,
			"WarmThroughput must be the only operation in the request", "DDB-TABLE-433"),
		invalid("warm and a new index", online+`'WarmThroughput':{'ReadUnitsPerSecond':12000}`,
			"Create global secondary index cannot be specified when updating WarmThroughput", "DDB-TABLE-174"),
		invalid("on demand and a stream", `'OnDemandThroughput':{'MaxReadRequestUnits':10},`+streamOn,
			"OnDemandThroughput can only be combined with BillingMode in an UpdateTable request", "DDB-TABLE-433"),
		invalid("stream and capacity", streamOn+`,`+sevens,
			"You cannot modify stream status while updating table IOPS", "DDB-TABLE-433"),
		invalid("stream and billing", streamOn+`,'BillingMode':'PROVISIONED'`,
			"You cannot modify stream status while updating table IOPS", "DDB-TABLE-433"),
		invalid("stream and a new index", online+streamOn,
			"You cannot create or delete index while changing stream status", "DDB-TABLE-174"),
		invalid("stream and an index less", dropped+streamOn,
			"You cannot create or delete index while changing stream status", "DDB-TABLE-442"),
		invalid("capacity and a new index", online+sevens,
			"You cannot create or delete index while updating table IOPS", "DDB-TABLE-174"),
		invalid("no updates of indexes", `'GlobalSecondaryIndexUpdates':[],'DeletionProtectionEnabled':true`,
			"List of GlobalSecondaryIndexUpdates is empty", "DDB-TABLE-359"),
		invalid("two actions in one", newAttr+`,'GlobalSecondaryIndexUpdates':[{'Create':`+index("new", "q")+`,
			'Delete':{'IndexName':'xyz'}}]`, "Only one global secondary index action is allowed per "+
			"GlobalSecondaryIndexUpdate object", "DDB-TABLE-160; "+scylla+
			"test_gsi_updatetable.py: test_gsi_updatetable_errors"),
		invalid("no definitions", `'GlobalSecondaryIndexUpdates':[{'Create':`+index("new", "c")+`}]`,
			"AttributeDefinitions is not specified for index: new", "DDB-TABLE-162; "+scylla+
				"test_gsi_updatetable.py: test_gsi_backfill_with_lsi"),
		{"no stream", "UpdateTable", `{'TableName':'ttt','StreamSpecification':{'StreamEnabled':false}}`,
			"ValidationException", "Table has no stream to disable: TableName: ttt", ackLab + "DDB-TABLE-442"},
		invalid("no view", `'StreamSpecification':{'StreamEnabled':true}`,
			"If stream is being enabled then UpdateViewType is required", "DDB-TABLE-442"),
		invalid("view of no stream", `'StreamSpecification':{'StreamEnabled':false,'StreamViewType':'NEW_IMAGE'}`,
			"If stream is being disabled, then UpdateViewType must not be specified", "DDB-TABLE-442"),
	})
	r.want(r.do("DescribeTable", `{'TableName':'ttt'}`), before)
	r.do("UpdateTable", `{'TableName':'ttt','BillingMode':'PAY_PER_REQUEST',`+streamOn+`}`) // DDB-TABLE-433
	r.do("UpdateTable", `{'TableName':'ttt','OnDemandThroughput':{'MaxReadRequestUnits':10},
		'BillingMode':'PAY_PER_REQUEST'}`) // DDB-TABLE-433
	r.do("UpdateTable", `{'TableName':'ttt','WarmThroughput':{'ReadUnitsPerSecond':12000}}`)
}

// TestCreateTableJudgesDefinitionsFirst: definitions that no key uses hide what is wrong with
// indexes.
func TestCreateTableJudgesDefinitionsFirst(t *testing.T) {
	create := func(fields string) string {
		return `{'TableName':'new','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[
			{'AttributeName':'p','AttributeType':'S'},{'AttributeName':'x','AttributeType':'S'}],
			'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],` + fields + `}`
	}
	newRig(t).refuses(t, []refusal{
		{"capacity of an index", "CreateTable", create(`'GlobalSecondaryIndexes':[` + index("ggg", "p") + `]`),
			"ValidationException", notValid + "Some AttributeDefinitions are not used. AttributeDefinitions: [p, x], " +
				"keys used: [p]", ackLab + "DDB-TABLE-127"},
		{"one name twice", "CreateTable", create(`'GlobalSecondaryIndexes':[` + freeIndex("ggg", "p") + `,` +
			freeIndex("ggg", "p") + `]`), "ValidationException", notValid + "Some AttributeDefinitions are not used. " +
			"AttributeDefinitions: [p, x], keys used: [p]", ackLab + "DDB-TABLE-127"},
		{"two partition keys of a local index", "CreateTable", `{'TableName':'new','BillingMode':'PAY_PER_REQUEST',
			'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'},{'AttributeName':'c','AttributeType':'S'}],
			'KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'c','KeyType':'RANGE'}],
			'LocalSecondaryIndexes':[{'IndexName':'lll','KeySchema':[{'AttributeName':'p','KeyType':'HASH'},
			{'AttributeName':'c','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}]}`, "ValidationException",
			"Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
			"https://github.com/architect/dynalite/blob/main/test/createTable.js"},
		{"no view", "CreateTable", strings.Replace(create(`'StreamSpecification':{'StreamEnabled':true}`),
			`,{'AttributeName':'x','AttributeType':'S'}`, "", 1), "ValidationException",
			notValid + "Table is being created with a stream enabled, UpdateViewType is required",
			ackLab + "DDB-TABLE-442"},
		{"view of no stream", "CreateTable", strings.Replace(create(`'StreamSpecification':{'StreamEnabled':false,
			'StreamViewType':'NEW_IMAGE'}`), `,{'AttributeName':'x','AttributeType':'S'}`, "", 1),
			"ValidationException", notValid + "Table is being created with a stream disabled, UpdateViewType should not be " +
				"specified", ackLab + "DDB-TABLE-442"},
	})
}

// TestDescriptionIsInTheServicesOrder: source: ack-api-quirks, services/dynamodb, DDB-TABLE-125 for
// the order, DDB-TABLE-138 for Backfilling, which an index has while UpdateTable makes it.
func TestDescriptionIsInTheServicesOrder(t *testing.T) {
	r := newRig(t)
	r.do("CreateTable", `{'TableName':'ttt','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[
		{'AttributeName':'z','AttributeType':'S'},{'AttributeName':'a','AttributeType':'S'},
		{'AttributeName':'p','AttributeType':'S'}],'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],
		'GlobalSecondaryIndexes':[{'IndexName':'ggg','KeySchema':[{'AttributeName':'z','KeyType':'HASH'},
		{'AttributeName':'a','KeyType':'HASH'}],'Projection':{'ProjectionType':'INCLUDE',
		'NonKeyAttributes':['zz','aa','mm']}}]}`)
	type shown struct {
		AttributeDefinitions   []struct{ AttributeName string }
		GlobalSecondaryIndexes []struct {
			KeySchema   []struct{ AttributeName string }
			Projection  struct{ NonKeyAttributes []string }
			Backfilling *bool
		}
	}
	var table struct{ Table, TableDescription shown }
	r.decode(r.do("DescribeTable", `{'TableName':'ttt'}`), &table)
	got, err := json.Marshal(table.Table)
	if err != nil {
		t.Fatal(err)
	}
	r.want(string(got), `{'AttributeDefinitions':[{'AttributeName':'a'},{'AttributeName':'p'},{'AttributeName':'z'}],
		'GlobalSecondaryIndexes':[{'KeySchema':[{'AttributeName':'z'},{'AttributeName':'a'}],
		'Projection':{'NonKeyAttributes':['aa','mm','zz']},'Backfilling':null}]}`)
	r.decode(r.do("UpdateTable", `{'TableName':'ttt','AttributeDefinitions':[{'AttributeName':'b','AttributeType':'S'}],
		'GlobalSecondaryIndexUpdates':[{'Create':`+freeIndex("hhh", "b")+`}]}`), &table)
	all := table.TableDescription.GlobalSecondaryIndexes
	if len(all) != 2 || all[0].Backfilling != nil || all[1].Backfilling == nil || *all[1].Backfilling {
		t.Errorf("the answer to UpdateTable has the indexes %+v", all)
	}
	table.Table = shown{}
	r.decode(r.do("DescribeTable", `{'TableName':'ttt'}`), &table)
	if got := fmt.Sprint(table.Table.AttributeDefinitions); got != "[{a} {b} {p} {z}]" {
		t.Errorf("definitions after UpdateTable: %s", got)
	}
}
