package pattern

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// quoted is a body in which ' stands for ".
func quoted(body string) []byte { return []byte(strings.ReplaceAll(body, "'", `"`)) }

// single is a single-table design.
const single = `
mapping: 1
segments: escape
families: {d: {max_versions: 1}}
rules:
- name: user
  match: {pk: "USER#{user}", sk: PROFILE}
  row: "u#{user}#p"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
- name: order
  match: {pk: "USER#{user}", sk: "ORDER#{id}"}
  row: "u#{user}#o#{id}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
- {name: rest, match: {pk: "{pk}", sk: "{sk}"}, drop: true}
`

func TestOperationsGiveTheirPatterns(t *testing.T) {
	r := NewReader(mapped(t, "Shop", single, schemaOf("pk sk"), indexOf("by_state: state, created:N")))
	const names = `'ExpressionAttributeNames':{'#p':'pk','#s':'sk'},`
	for name, c := range map[string]struct {
		operation, body string
		want            string // texts with counts of keys, or the reason
	}{
		"get": {"GetItem", `{'TableName':'Shop','Key':{'sk':{'S':'PROFILE'},'pk':{'S':'USER#ann'}}}`,
			"GetItem Shop pk = ? and sk = ?, rule user ×1"},
		"get by ARN, flags": {"GetItem", `{'TableName':'arn:aws:dynamodb:eu-west-1:123456789012:table/Shop',
			'Key':{'sk':{'S':'PROFILE'},'pk':{'S':'USER#ann'}},'ConsistentRead':true,'ProjectionExpression':'a'}`,
			"GetItem Shop pk = ? and sk = ?, rule user, projection, consistent ×1"},
		"get of an unknown table": {"GetItem", `{'TableName':'Elsewhere','Key':{'z':{'S':'1'},'a':{'N':'1'}},
			'AttributesToGet':['q']}`, "GetItem Elsewhere a = ? and z = ?, projection ×1"},
		"query": {"Query", `{'TableName':'Shop',` + names + `'KeyConditionExpression':'begins_with(#s, :s) and #p = :p',
			'ExpressionAttributeValues':{':p':{'S':'USER#ann'},':s':{'S':'ORDER#'}}}`,
			"Query Shop pk = ? and begins_with(sk, ?), rule order ×1"},
		"query, legacy": {"Query", `{'TableName':'Shop','KeyConditions':{
			'sk':{'ComparisonOperator':'BEGINS_WITH','AttributeValueList':[{'S':'ORDER#'}]},
			'pk':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'USER#ann'}]}}}`,
			"Query Shop pk = ? and begins_with(sk, ?), rule order ×1"},
		"query of several rules": {"Query", `{'TableName':'Shop','KeyConditionExpression':'(pk=:p)',
			'ExpressionAttributeValues':{':p':{'S':'GROUP#ann'}}}`, "Query Shop pk = ?, rule rest ×1"},
		"query that leaves all rules": {"Query", `{'TableName':'Shop','KeyConditionExpression':':p = pk',
			'ExpressionAttributeValues':{':p':{'S':'USER#ann'}},'ScanIndexForward':false,'Limit':5,'Select':'COUNT',
			'FilterExpression':'attribute_exists(x)','ExclusiveStartKey':{'pk':{'S':'USER#ann'},'sk':{'S':'ORDER#1'}}}`,
			"Query Shop pk = ?, any rule, backward, filter, count, limit, paginated ×1"},
		"query into a capture": {"Query", `{'TableName':'Shop','KeyConditionExpression':'pk=:p and sk between :a and :b',
			'ExpressionAttributeValues':{':p':{'S':'USER#ann'},':a':{'S':'ORDER#2026-01'},':b':{'S':'ORDER#2026-02'}}}`,
			"Query Shop pk = ? and sk between ? and ?, rule order ({id} range) ×1"},
		"mirrored": {"Query", `{'TableName':'Elsewhere','KeyConditionExpression':':a >= b and a = :a',
			'ExpressionAttributeValues':{':a':{'N':'1'}}}`, "Query Elsewhere a = ? and b <= ? ×1"},
		"query of an index": {"Query", `{'TableName':'Shop','IndexName':'by_state','KeyConditions':{
			'created':{'ComparisonOperator':'GT','AttributeValueList':[{'N':'5'}]},
			'state':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'open'}]}},
			'QueryFilter':{'x':{'ComparisonOperator':'NULL'}}}`,
			"Query Shop/by_state state = ? and created > ?, any rule, filter ×1"},
		"scan": {"Scan", `{'TableName':'Shop','TotalSegments':4,'Segment':1,
			'ScanFilter':{'x':{'ComparisonOperator':'NULL'}}}`,
			"Scan Shop, filter, parallel ×1"},
		"batch": {"BatchGetItem", `{'RequestItems':{'Shop':{'Keys':[{'pk':{'S':'USER#a'},'sk':{'S':'ORDER#1'}},
			{'pk':{'S':'USER#a'},'sk':{'S':'PROFILE'}}],'ConsistentRead':true},'Elsewhere':{'Keys':[{'k':{'B':'AAA='}}]}}}`,
			"BatchGetItem Shop pk = ? and sk = ?, rule user or order, consistent ×2; BatchGetItem Elsewhere k = ? ×1"},
		"transaction of reads": {"TransactGetItems", `{'TransactItems':[
			{'Get':{'TableName':'Shop','Key':{'pk':{'S':'USER#a'},'sk':{'S':'ORDER#1'}}}},
			{'Get':{'TableName':'Elsewhere','Key':{'k':{'S':'1'}}}},
			{'Get':{'TableName':'Shop','Key':{'pk':{'S':'USER#a'},'sk':{'S':'ORDER#2'}},'ProjectionExpression':'a'}}]}`,
			"TransactGetItems Shop pk = ? and sk = ?, rule order, projection ×2; TransactGetItems Elsewhere k = ? ×1"},

		"put":            {"PutItem", `{'TableName':'Shop','Item':{}}`, "PutItem Shop ×1"},
		"put, condition": {"PutItem", `{'TableName':'Shop','ConditionExpression':'x'}`, "PutItem Shop, conditional ×1"},
		"delete, legacy": {"DeleteItem", `{'TableName':'Shop','Expected':{'x':{'Exists':false}}}`,
			"DeleteItem Shop, conditional ×1"},
		"update": {"UpdateItem", `{'TableName':'Shop','UpdateExpression':'SET a=:a',
			'ExpressionAttributeValues':{':a':{'S':'1'}}}`, "UpdateItem Shop ×1"},
		"update adds": {"UpdateItem", `{'TableName':'Shop','UpdateExpression':'ADD a :a SET b=b+:a',
			'ExpressionAttributeValues':{':a':{'N':'1'}}}`, "UpdateItem Shop, ADD, computes ×1"},
		"update, legacy": {"UpdateItem", `{'TableName':'Shop','AttributeUpdates':{'a':{'Action':'ADD','Value':{'N':'1'}}}}`,
			"UpdateItem Shop, ADD ×1"},
		"batch of writes": {"BatchWriteItem", `{'RequestItems':{'Shop':[{'PutRequest':{}},{'DeleteRequest':{}},
			{'PutRequest':{}}]}}`, "BatchWriteItem put Shop ×2; BatchWriteItem delete Shop ×1"},
		"transaction": {"TransactWriteItems", `{'TransactItems':[{'Put':{'TableName':'Shop'}},{'Put':{'TableName':'Shop'}},
			{'ConditionCheck':{'TableName':'Shop','ConditionExpression':'a'}},
			{'Update':{'TableName':'Elsewhere','UpdateExpression':'REMOVE a'}}]}`,
			"TransactWriteItems put Shop ×2; TransactWriteItems check Shop, conditional ×1; " +
				"TransactWriteItems update Elsewhere ×1"},
		"statement":       {"ExecuteStatement", `{'Statement':'SELECT secret FROM Shop'}`, "PartiQL ×1"},
		"batch statement": {"BatchExecuteStatement", `{}`, "PartiQL ×1"},

		"no JSON":             {"GetItem", `{'TableName'`, "json"},
		"a list":              {"GetItem", `[]`, "json"},
		"no table":            {"GetItem", `{}`, "table"},
		"a table that is not": {"GetItem", `{'TableName':'not a name'}`, "table"},
		"no key":              {"GetItem", `{'TableName':'Shop'}`, "key"},
		"another key":         {"GetItem", `{'TableName':'Shop','Key':{'x':{'S':'1'},'pk':{'S':'1'}}}`, "key"},
		"half a key":          {"GetItem", `{'TableName':'Shop','Key':{'pk':{'S':'1'}}}`, "key"},
		"a key that is none":  {"GetItem", `{'TableName':'Shop','Key':{'pk':{'S':'1'},'sk':{'BOOL':true}}}`, "key"},
		"no condition":        {"Query", `{'TableName':'Shop'}`, "key"},
		"a wrong condition":   {"Query", `{'TableName':'Shop','KeyConditionExpression':'pk = :missing'}`, "expression"},
		"no equality": {"Query", `{'TableName':'Elsewhere','KeyConditionExpression':'a > :a',
			'ExpressionAttributeValues':{':a':{'S':'1'}}}`, "key"},
		"another operator": {"Query", `{'TableName':'Shop','KeyConditions':{
			'pk':{'ComparisonOperator':'NE','AttributeValueList':[{'S':'1'}]}}}`, "expression"},
		"a value that is none": {"Query", `{'TableName':'Shop','KeyConditionExpression':'pk = :p',
			'ExpressionAttributeValues':{':p':'x'}}`, "expression"},
		"a batch of nothing": {"BatchWriteItem", `{'RequestItems':{'Shop':[]}}`, "key"},
		"another operation":  {"DescribeTable", `{'TableName':'Shop'}`, "operation"},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.Of(c.operation, quoted(c.body))
			text := string(got.Skipped)
			for i, u := range got.Uses {
				if i > 0 {
					text += "; "
				}
				text += fmt.Sprintf("%s ×%d", u.Pattern.Text(), u.Keys)
			}
			if diff := cmp.Diff(c.want, text); diff != "" {
				t.Errorf("pattern (-want +got):\n%s", diff)
			}
		})
	}
}

// BenchmarkOf reads a Query of a table with a mapping, and counts it.
func BenchmarkOf(b *testing.B) {
	program, _ := compileMapping("Shop", single, schemaOf("pk sk"))
	r, c := NewReader(Table{Name: "Shop", Schema: schemaOf("pk sk"), Program: program}), NewCollector()
	body := quoted(`{'TableName':'Shop','KeyConditionExpression':'pk=:p and sk between :a and :b',
		'ExpressionAttributeValues':{':p':{'S':'USER#ann'},':a':{'S':'ORDER#2026-01'},':b':{'S':'ORDER#2026-02'}}}`)
	b.ReportAllocs()
	for b.Loop() {
		c.Add(r.Of("Query", body), Answer{Bytes: 1_000})
	}
}

func TestPatternsOfAZeroReaderHaveNoRules(t *testing.T) {
	got := Of("GetItem", quoted(`{'TableName':'Shop','Key':{'sk':{'S':'PROFILE'},'pk':{'S':'USER#ann'}}}`))
	if len(got.Uses) != 1 || got.Uses[0].Pattern.Text() != "GetItem Shop pk = ? and sk = ?" {
		t.Errorf("got %+v", got)
	}
}
