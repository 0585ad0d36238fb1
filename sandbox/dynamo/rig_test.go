package dynamo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// rig is a server on a real port, with its stream engine and ledger.
type rig struct {
	*dynamo.Server
	t      testing.TB
	url    string
	clock  *clock.Clock
	ledger *ledger.Ledger
	stream *stream.Engine
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.New(), ledger: ledger.New(stream.Numbers(0))}
	r.stream = stream.New(stream.Options{Clock: r.clock, Ledger: r.ledger})
	r.Server = dynamo.New(dynamo.Options{Stream: r.stream})
	srv := httptest.NewServer(r.Server)
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

// answer is what came back: the HTTP status, code and message of an error, or the body.
type answer struct {
	Status        int
	Code, Message string
	Body          string
}

// raw sends a body as it is.
func (r *rig) raw(op, body string) answer {
	r.t.Helper()
	api := "DynamoDB_20120810."
	switch op {
	case "ListStreams", "DescribeStream", "GetShardIterator", "GetRecords":
		api = "DynamoDBStreams_20120810."
	}
	req, err := http.NewRequest(http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", api+op)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Date", "20260101T000000Z")
	req.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	a := answer{Status: res.StatusCode, Body: string(b)}
	if res.StatusCode != http.StatusOK {
		var e struct {
			Type    string `json:"__type"`
			Message string
		}
		if err := json.Unmarshal(b, &e); err != nil {
			r.t.Fatalf("%s: status %d, %q", op, res.StatusCode, b)
		}
		_, a.Code, _ = strings.Cut(e.Type, "#")
		a.Message = e.Message
	}
	return a
}

// do sends a body in which ' stands for ", and fails the test on an error.
func (r *rig) do(op, body string) string {
	r.t.Helper()
	a := r.raw(op, quotes(body))
	if a.Code != "" {
		r.t.Fatalf("%s %s: %s: %s", op, body, a.Code, a.Message)
	}
	return a.Body
}

// refusal is a request with the service's answer to it: status 400, a code and a message. source
// is where the answer is documented or was observed.
type refusal struct{ name, op, body, code, message, source string }

// Where the service's answers are from. The suites record what the service itself answered.
const (
	parity   = "https://github.com/nubo-db/dynamodb-conformance/blob/main/tests/"
	scylla   = "https://github.com/scylladb/scylladb/blob/master/test/alternator/"
	ackLab   = "ack-api-quirks, services/dynamodb: findings on the live API, October 2026: "
	awsGuide = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
	awsAPI   = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
)

// refuses sends requests, in which ' stands for ", and compares the answers.
func (r *rig) refuses(t *testing.T, all []refusal) {
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			got := r.raw(c.op, quotes(c.body))
			if got.Status != http.StatusBadRequest || got.Code != c.code || got.Message != c.message {
				t.Errorf("got  %d %s: %s\nwant 400 %s: %s\nsource: %s\n%.300s", got.Status, got.Code, got.Message,
					c.code, c.message, c.source, got.Body)
			}
		})
	}
}

func quotes(s string) string { return strings.ReplaceAll(s, "'", `"`) }

// want compares a JSON answer with what is wanted, in which ' stands for ".
func (r *rig) want(got, want string) {
	r.t.Helper()
	if g, w := compact(r.t, got), compact(r.t, quotes(want)); g != w {
		r.t.Errorf("got  %s\nwant %s", g, w)
	}
}

// compact brings JSON into one form, with sorted fields.
func compact(t testing.TB, s string) string {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// table makes a table with partition key p (S), and sort key c of a type unless that is
// "".
func (r *rig) table(name, sortType string) {
	r.t.Helper()
	defs, keys := `{'AttributeName':'p','AttributeType':'S'}`, `{'AttributeName':'p','KeyType':'HASH'}`
	if sortType != "" {
		defs += `,{'AttributeName':'c','AttributeType':'` + sortType + `'}`
		keys += `,{'AttributeName':'c','KeyType':'RANGE'}`
	}
	r.do("CreateTable", `{'TableName':'`+name+`','AttributeDefinitions':[`+defs+`],'KeySchema':[`+keys+`],
		'BillingMode':'PAY_PER_REQUEST','StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_AND_OLD_IMAGES'}}`)
}

func (r *rig) put(table, item string) {
	r.t.Helper()
	r.do("PutItem", `{'TableName':'`+table+`','Item':`+item+`}`)
}

// item reads an item of a table whose key is p alone.
func (r *rig) item(table, p string) string {
	r.t.Helper()
	body := r.do("GetItem", `{'TableName':'`+table+`','Key':{'p':{'S':'`+p+`'}},'ConsistentRead':true}`)
	var out struct{ Item json.RawMessage }
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		r.t.Fatal(err)
	}
	if out.Item == nil {
		return "null"
	}
	return string(out.Item)
}
