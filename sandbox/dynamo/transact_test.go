package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

func (r *rig) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &r.url,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

// TestTransactionTokensCompareMeaning sends one transaction in several forms under one token, then
// others.
func TestTransactionTokensCompareMeaning(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	send := func(items string) answer {
		return r.raw("TransactWriteItems", quotes(`{'ClientRequestToken':'x','TransactItems':[`+items+`]}`))
	}
	for _, same := range []string{
		`{'Update':{'TableName':'ttt','Key':{'p':{'S':'a'}},'UpdateExpression':'ADD n :1, s :s',
			'ExpressionAttributeValues':{':1':{'N':'1'},':s':{'SS':['a','b']}}}}`,
		`{'Update':{'ExpressionAttributeValues':{':s':{'SS':['b','a']},':1':{'N':'1.0'}},'UpdateExpression':'ADD n :1, s :s',
			'Key':{'p':{'S':'a'}},'TableName':'ttt'}}`,
		`{'Update':{'TableName':'arn:aws:dynamodb:us-east-1:000000000000:table/ttt','Key':{'p':{'S':'\u0061'}},
			'ConditionExpression':null,
			'UpdateExpression':'ADD n :1, s :s','ExpressionAttributeValues':{':1':{'N':'1e0'},':s':{'SS':['a','b']}}}}`,
	} {
		if a := send(same); a.Code != "" {
			t.Errorf("%s: %s: %s", same, a.Code, a.Message)
		}
	}
	r.want(r.item("ttt", "a"), `{'p':{'S':'a'},'n':{'N':'1'},'s':{'SS':['a','b']}}`)
	for _, other := range []string{
		`{'Update':{'TableName':'ttt','Key':{'p':{'S':'a'}},'UpdateExpression':'ADD n :1, s :s',
			'ExpressionAttributeValues':{':1':{'N':'2'},':s':{'SS':['a','b']}}}}`,
		`{'Put':{'TableName':'ttt','Item':{'p':{'S':'a'}}}}`,
		`{'Put':{'TableName':'ttt','Item':{'p':{'S':'a'}}}},{'Put':{'TableName':'ttt','Item':{'p':{'S':'b'}}}}`,
	} {
		if a := send(other); a.Code != "IdempotentParameterMismatchException" {
			t.Errorf("%s: %s: %s", other, a.Code, a.Message)
		}
	}
}

func TestTransactionsTakeARNs(t *testing.T) {
	r, ctx := newRig(t), context.Background()
	r.table("ttt", "")
	c, arn := r.client(), ptr("arn:aws:dynamodb:us-east-1:000000000000:table/ttt")
	if _, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: arn, Item: attrs{"p": text("a")}}},
		{Delete: &types.Delete{TableName: arn, Key: attrs{"p": text("b")}}},
		{ConditionCheck: &types.ConditionCheck{TableName: arn, Key: attrs{"p": text("c")},
			ConditionExpression: ptr("attribute_not_exists(p)")}},
		{Update: &types.Update{TableName: arn, Key: attrs{"p": text("d")}, UpdateExpression: ptr("SET x = :x"),
			ExpressionAttributeValues: attrs{":x": num(1)}}},
	}}); err != nil {
		t.Fatal(err)
	}
	got, err := c.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: arn, Key: attrs{"p": text("a")}}}, {Get: &types.Get{TableName: ptr("ttt"),
			Key: attrs{"p": text("d")}}},
	}})
	if err != nil || len(got.Responses) != 2 || len(got.Responses[0].Item) != 1 || len(got.Responses[1].Item) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTransactionsThatTheServiceRefuses looks at the code that an SDK sees: a ValidationException
// is of the request, a TransactionCanceledException of what the items are.
func TestTransactionsThatTheServiceRefuses(t *testing.T) {
	r, ctx := newRig(t), context.Background()
	r.table("ttt", "")
	c, name, big := r.client(), ptr("ttt"), text(strings.Repeat("x", 399<<10))
	var puts []types.TransactWriteItem
	var gets []types.TransactGetItem
	var updates []types.TransactWriteItem
	for i := range 11 {
		key := attrs{"p": text(fmt.Sprint(i))}
		r.put("ttt", fmt.Sprintf(`{'p':{'S':'%d'},'x':{'S':'%s'}}`, i, strings.Repeat("x", 399<<10)))
		puts = append(puts, types.TransactWriteItem{Put: &types.Put{TableName: name, Item: attrs{"p": key["p"], "y": big}}})
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: name, Key: key}})
		updates = append(updates, types.TransactWriteItem{Update: &types.Update{TableName: name, Key: key,
			UpdateExpression: ptr("SET y = :y"), ExpressionAttributeValues: attrs{":y": num(1)}}})
	}
	write := func(items ...types.TransactWriteItem) error {
		_, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
		return err
	}
	read := func(items ...types.TransactGetItem) error {
		_, err := c.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: items})
		return err
	}
	empty := attrs{"p": text("")}
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"updates of 4 MB":   {write(updates...), "ValidationException"},
		"puts of 4 MB":      {write(puts...), "ValidationException"},
		"puts of less":      {write(puts[:10]...), ""},
		"reads of 4 MB":     {read(gets...), "ValidationException"},
		"reads of less":     {read(gets[:10]...), ""},
		"reads of one item": {read(gets[0], gets[1], gets[0]), "ValidationException"},
		"update of empty key": {write(types.TransactWriteItem{Update: &types.Update{TableName: name, Key: empty,
			UpdateExpression: ptr("REMOVE x")}}), "ValidationException"},
		"delete of empty key": {write(types.TransactWriteItem{Delete: &types.Delete{TableName: name, Key: empty}}),
			"ValidationException"},
		"read of empty key": {read(types.TransactGetItem{Get: &types.Get{TableName: name, Key: empty}}),
			"ValidationException"},
		"delete of a wrong key": {write(types.TransactWriteItem{Delete: &types.Delete{TableName: name,
			Key: attrs{"q": text("a")}}}), "TransactionCanceledException"},
	} {
		code := ""
		var failed smithy.APIError
		if errors.As(c.err, &failed) {
			code = failed.ErrorCode()
		} else if c.err != nil {
			t.Errorf("%s: %v", what, c.err)
		}
		if code != c.want {
			t.Errorf("%s: code %q, want %q: %v", what, code, c.want, c.err)
		}
	}
	if got, _ := r.ledger.Count("ttt"); got != 11+10 {
		t.Errorf("%d changes, want those of 11 puts and of one transaction", got)
	}
}

// TestFirstInvalidActionAloneIsTheReason: source: scylladb/scylladb,
// test/alternator/test_transact.py: test_transact_write_cancellation_reasons_validationerror. The
// condition of the last action would fail.
func TestFirstInvalidActionAloneIsTheReason(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	put := func(p, more string) string { return `{'Put':{'TableName':'ttt','Item':{'p':` + p + `}` + more + `}}` }
	a := r.raw("TransactWriteItems", quotes(`{'TransactItems':[`+put(`{'S':'a'}`, "")+`,`+put(`{'N':'7'}`, "")+`,`+
		put(`{'N':'8'}`, "")+`,`+put(`{'S':'b'}`, `,'ConditionExpression':'attribute_exists(p)'`)+`]}`))
	var out struct {
		CancellationReasons []struct{ Code, Message string }
	}
	r.decode(a.Body, &out)
	var codes []string
	for _, reason := range out.CancellationReasons {
		codes = append(codes, reason.Code)
	}
	if got, want := strings.Join(codes, " "), "None ValidationError None None"; got != want {
		t.Errorf("reasons %s, want %s", got, want)
	}
}
