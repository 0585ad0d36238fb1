package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// WorldOptions configures a World.
type WorldOptions struct {
	Options        // of the sandbox. Sweep 0 means never here: a test sweeps by a command
	View    string // stream view type of the tables that CreateTable makes; default NEW_AND_OLD_IMAGES
	// Compare compares a table with its target and returns the differences as an error. The caller
	// provides it, because only the system under test can compute the cells of an item. nil: Equal
	// fails.
	Compare func(ctx context.Context, table string) error
}

func (o WorldOptions) withDefaults() WorldOptions {
	o.Sweep = cmp.Or(o.Sweep, -1)
	o.View = cmp.Or(o.View, "NEW_AND_OLD_IMAGES")
	return o
}

// World is a sandbox for one test, with what tests do to its tables. It outlives the systems under
// test that run against it. Call, CreateTable, Put, Update and Delete may run on any goroutine: a
// refused call marks the test as failed and does not end it.
type World struct {
	*Sandbox
	// Watch is how Until waits. NewWorld sets its Progress to the Progress of the sandbox; the test
	// may set the rest.
	Watch Watch
	View  string // stream view type of the tables that CreateTable makes from now on

	t       TB
	compare func(ctx context.Context, table string) error
}

// NewWorld starts a sandbox that ends with the test.
func NewWorld(t TB, o WorldOptions) *World {
	t.Helper()
	o = o.withDefaults()
	w := &World{Sandbox: Test(t, o.Options), View: o.View, t: t, compare: o.Compare}
	w.Watch.Progress = w.Progress
	return w
}

// Key is a key attribute of a table: its name, and its type "S", "N" or "B".
type Key struct{ Name, Type string }

// defaultKeys are the keys that Put, Update and Delete write.
var defaultKeys = []Key{{"pk", "S"}, {"sk", "S"}}

// CreateTable makes an on-demand table with a stream. keys are its partition key and its sort key,
// if it has one; the default is pk and sk, both strings, which is what Put, Update and Delete need.
func (w *World) CreateTable(name string, keys ...Key) {
	w.t.Helper()
	if len(keys) == 0 {
		keys = defaultKeys
	}
	var definitions, schema []string
	for i, k := range keys {
		role := "HASH"
		if i > 0 {
			role = "RANGE"
		}
		name := quote(k.Name)
		definitions = append(definitions, fmt.Sprintf(`{"AttributeName":%s,"AttributeType":%s}`, name, quote(k.Type)))
		schema = append(schema, fmt.Sprintf(`{"AttributeName":%s,"KeyType":%s}`, name, quote(role)))
	}
	w.Call("CreateTable", fmt.Sprintf(`{"TableName":%s,"AttributeDefinitions":[%s],"KeySchema":[%s],
		"BillingMode":"PAY_PER_REQUEST","StreamSpecification":{"StreamEnabled":true,"StreamViewType":%s}}`,
		quote(name), strings.Join(definitions, ","), strings.Join(schema, ","), quote(w.View)))
}

// Call makes one DynamoDB call and returns its reply, nil when it was refused.
func (w *World) Call(operation, body string) []byte {
	w.t.Helper()
	reply, err := w.Sandbox.Call(w.t.Context(), operation, body)
	if err != nil {
		w.t.Errorf("%v", err)
	}
	return reply
}

// Put puts an item. attributes are those beside the key, as the fields of a DynamoDB JSON object:
// `"n":{"N":"1"}`.
func (w *World) Put(table, pk, sk, attributes string) {
	w.t.Helper()
	if attributes != "" {
		attributes = "," + attributes
	}
	w.Call("PutItem", fmt.Sprintf(`{"TableName":%s,"Item":{%s%s}}`, quote(table), keyFields(pk, sk), attributes))
}

// Fill puts n items that are older than the table's stream: no stream record and no line of the
// ledger is made of them. item returns the i-th one as DynamoDB JSON.
func (w *World) Fill(table string, n int, item func(i int) []byte) {
	w.t.Helper()
	err := w.DynamoDB.Fill(table, func(yield func([]byte) bool) {
		for i := 0; i < n && yield(item(i)); i++ {
		}
	})
	if err != nil {
		w.t.Errorf("fill %s: %v", table, err)
	}
}

// Update applies an update expression to an item. values are the fields of
// ExpressionAttributeValues, "" for none.
func (w *World) Update(table, pk, sk, expression, values string) {
	w.t.Helper()
	if values != "" {
		values = `,"ExpressionAttributeValues":{` + values + `}`
	}
	w.Call("UpdateItem", fmt.Sprintf(`{"TableName":%s,"Key":{%s},"UpdateExpression":%s%s}`,
		quote(table), keyFields(pk, sk), quote(expression), values))
}

// Delete deletes an item. The deletion of a missing item is not a change.
func (w *World) Delete(table, pk, sk string) {
	w.t.Helper()
	w.Call("DeleteItem", fmt.Sprintf(`{"TableName":%s,"Key":{%s}}`, quote(table), keyFields(pk, sk)))
}

// keyFields returns the fields of a key, or the first fields of an item, as DynamoDB JSON.
func keyFields(pk, sk string) string {
	return fmt.Sprintf(`"pk":{"S":%s},"sk":{"S":%s}`, quote(pk), quote(sk))
}

// quote writes a string as JSON.
func quote(s string) string { return string(wire.AppendString(nil, s)) }

// Items returns every item of a table as DynamoDB JSON, in the order of a Scan. Faults do not
// apply.
func (w *World) Items(table string) [][]byte {
	w.t.Helper()
	items, err := w.DynamoDB.Items(table)
	if err != nil {
		w.t.Fatalf("items of %s: %v", table, err)
	}
	return items
}

// Until blocks until condition returns true, or ends the test as Watch does.
func (w *World) Until(what string, condition func() bool) {
	w.t.Helper()
	w.Watch.Until(w.t, what, condition)
}

// Equal compares tables with their targets through WorldOptions.Compare, and fails the test with
// what differs.
func (w *World) Equal(tables ...string) {
	w.t.Helper()
	if w.compare == nil {
		w.t.Fatalf("compare %v: this world has no Compare", tables)
	}
	for _, table := range tables {
		if err := w.compare(w.t.Context(), table); err != nil {
			w.t.Errorf("table %s: %v", table, err)
		}
	}
}

// asked counts the addresses that FreeAddr has looked at.
var asked atomic.Int64

// FreeAddr returns an address on loopback at which nothing listens, for a server that is to find it
// free again after a restart, or for one that is never there. Its port lies below the ports that
// the system gives to clients and to listeners on port 0, so that no test takes it by accident.
// Concurrent processes begin far from each other.
func FreeAddr(t TB) string {
	t.Helper()
	for range 1000 {
		port := 12_000 + (int64(os.Getpid())*1009+asked.Add(1))%20_000
		addr := net.JoinHostPort("127.0.0.1", strconv.FormatInt(port, 10))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatalf("%v", err)
		}
		return addr
	}
	t.Fatalf("no free port")
	return ""
}
