package dynamo_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

func TestTablesTakeTimeToComeAndGo(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	r := &rig{t: t, clock: c, stream: stream.New(stream.Options{Clock: c})}
	r.Server = dynamo.New(dynamo.Options{Stream: r.stream, Transition: 10 * time.Second})
	srv := httptest.NewServer(r.Server)
	t.Cleanup(srv.Close)
	r.url = srv.URL
	refused := func(op, body, code string) {
		t.Helper()
		if a := r.raw(op, quotes(body)); a.Code != code {
			t.Errorf("%s: got %s: %s, want %s", op, a.Code, a.Message, code)
		}
	}
	status := func(want string) {
		t.Helper()
		if got := r.do("DescribeTable", `{'TableName':'ttt'}`); !strings.Contains(got, `"TableStatus":"`+want+`"`) {
			t.Errorf("want %s: %s", want, got)
		}
	}
	const put = `{'TableName':'ttt','Item':{'p':{'S':'x'}}}`
	r.table("ttt", "")
	status("CREATING")
	refused("PutItem", put, "ResourceNotFoundException")
	refused("DeleteTable", `{'TableName':'ttt'}`, "ResourceInUseException")
	c.Advance(10 * time.Second)
	status("ACTIVE")
	r.do("PutItem", put)
	r.do("UpdateTable", `{'TableName':'ttt','StreamSpecification':{'StreamEnabled':false}}`)
	status("UPDATING")
	r.do("PutItem", put) // as on AWS, an update does not disturb
	refused("UpdateTable", `{'TableName':'ttt','StreamSpecification':{'StreamEnabled':true,
		'StreamViewType':'KEYS_ONLY'}}`, "ResourceInUseException")
	c.Advance(10 * time.Second)
	r.do("DeleteTable", `{'TableName':'ttt'}`)
	status("DELETING")
	r.do("DeleteTable", `{'TableName':'ttt'}`) // is no error, and begins nothing anew
	refused("UpdateTable", `{'TableName':'ttt','BillingMode':'PAY_PER_REQUEST'}`, "ResourceInUseException")
	refused("PutItem", put, "ResourceNotFoundException")
	refused("CreateTable", `{'TableName':'ttt','BillingMode':'PAY_PER_REQUEST',
		'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],
		'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}]}`, "ResourceInUseException")
	c.Advance(10 * time.Second)
	r.want(r.do("ListTables", `{}`), `{'TableNames':[]}`)
	refused("DescribeTable", `{'TableName':'ttt'}`, "ResourceNotFoundException")
	r.table("ttt", "")
}
