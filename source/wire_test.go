package source

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/change"
)

// wire is a DynamoDB Streams server of a few lines that does what no honest server does: it speaks
// the service's protocol and is scripted per call. It lives in virtual time as well as in real
// time.
type wire struct {
	mu       sync.Mutex
	status   string
	page     int // shards per listing page
	shards   []*wireShard
	calls    []wireCall
	script   func(c wireCall) *wireReply // nil reply: serve honestly
	noFilter bool                        // CHILD_SHARDS is ignored
	lifetime time.Duration               // of iterators
}

type wireShard struct {
	id, parent string
	start, end string
	closed     bool
	hidden     time.Time // not listed before
	records    []string
}

type wireCall struct {
	at    time.Time
	op    string
	shard string
	kind  string // iterator type, or shard filter
	in    map[string]any
}

type wireReply struct {
	status int
	body   string
	header map[string]string
	cut    int // bytes that arrive
}

func newWire() *wire { return &wire{status: "ENABLED", page: 100, lifetime: 15 * time.Minute} }

func (w *wire) shard(id, parent string, n int) *wireShard {
	sh := &wireShard{id: id, parent: parent, start: seq(len(w.shards) * 1000), closed: false}
	for i := range n {
		sh.add(seq(len(w.shards)*1000 + i))
	}
	w.shards = append(w.shards, sh)
	return sh
}

func (sh *wireShard) add(sequence string) {
	key := fmt.Sprintf(`{"pk":{"S":"item-%d"}}`, len(sh.records)%7)
	sh.records = append(sh.records, record(sequence, time.Now().Unix(), key))
}

func seq(n int) string { return fmt.Sprintf("1000000000000000000%06d", n) }

// after is the position behind record n.
func after(n int) change.Position { return change.Position{After: change.SequenceNumber(seq(n))} }

func record(sequence string, created int64, key string) string {
	return fmt.Sprintf(`{"eventID":"%032d","eventName":"MODIFY","eventVersion":"1.1","eventSource":"aws:dynamodb",`+
		`"awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":%d,"Keys":%s,"NewImage":%s,"OldImage":%s,`+
		`"SequenceNumber":"%s","SizeBytes":60,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`,
		len(sequence), created, key, key, key, sequence)
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c := wireCall{at: time.Now(), op: op}
	_ = json.NewDecoder(r.Body).Decode(&c.in)
	c.shard, _ = c.in["ShardId"].(string)
	c.kind, _ = c.in["ShardIteratorType"].(string)
	if f, ok := c.in["ShardFilter"].(map[string]any); ok {
		c.kind, c.shard = f["Type"].(string), f["ShardId"].(string)
	}
	if it, ok := c.in["ShardIterator"].(string); ok {
		c.shard, _, _ = strings.Cut(it, "|")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
	var reply *wireReply
	if w.script != nil {
		reply = w.script(c)
	}
	if reply == nil {
		reply = w.answer(c)
	}
	reply.write(rw)
}

func (p *wireReply) write(rw http.ResponseWriter) {
	rw.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
	rw.Header().Set("Content-Length", strconv.Itoa(len(p.body)))
	for k, v := range p.header {
		rw.Header().Set(k, v)
	}
	rw.WriteHeader(max(p.status, 200))
	if p.cut > 0 {
		p.body = p.body[:p.cut]
	}
	_, _ = io.WriteString(rw, p.body)
}

func refuse(code, message string) *wireReply {
	return &wireReply{status: 400, body: fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, code,
		message)}
}

func (w *wire) answer(c wireCall) *wireReply {
	switch c.op {
	case "DescribeStream":
		return w.describe(c)
	case "GetShardIterator":
		return w.iterator(c)
	case "GetRecords":
		return w.records(c)
	}
	return refuse("UnknownOperationException", c.op)
}

func (w *wire) describe(c wireCall) *wireReply {
	var list []string
	last, _ := c.in["ExclusiveStartShardId"].(string)
	more := ""
	for _, sh := range w.shards {
		if sh.id <= last || time.Now().Before(sh.hidden) || c.kind != "" && !w.noFilter && sh.parent != c.shard {
			continue
		}
		if len(list) == w.page {
			more = fmt.Sprintf(`,"LastEvaluatedShardId":%q`, last)
			break
		}
		last = sh.id
		list = append(list, sh.json())
	}
	return &wireReply{body: fmt.Sprintf(`{"StreamDescription":{"StreamArn":"arn","StreamStatus":%q,`+
		`"StreamViewType":"NEW_AND_OLD_IMAGES","Shards":[%s]%s}}`,
		w.status, strings.Join(list, ","), more)}
}

func (sh *wireShard) json() string {
	parent, end := "", ""
	if sh.parent != "" {
		parent = fmt.Sprintf(`,"ParentShardId":%q`, sh.parent)
	}
	if sh.end != "" {
		end = fmt.Sprintf(`,"EndingSequenceNumber":%q`, sh.end)
	}
	return fmt.Sprintf(`{"ShardId":%q%s,"SequenceNumberRange":{"StartingSequenceNumber":%q%s}}`, sh.id, parent, sh.start,
		end)
}

func (w *wire) find(id string) *wireShard {
	i := slices.IndexFunc(w.shards, func(sh *wireShard) bool { return sh.id == id })
	if i < 0 {
		return nil
	}
	return w.shards[i]
}

func (w *wire) iterator(c wireCall) *wireReply {
	sh := w.find(c.shard)
	if sh == nil {
		return refuse("ResourceNotFoundException", "Shard does not exist")
	}
	at := 0
	switch c.kind {
	case "TRIM_HORIZON":
	case "AFTER_SEQUENCE_NUMBER":
		after := c.in["SequenceNumber"].(string)
		for at < len(sh.records) && sequenceOf(sh.records[at]) <= after {
			at++
		}
	case "AT_SEQUENCE_NUMBER":
		for at < len(sh.records) && sequenceOf(sh.records[at]) < c.in["SequenceNumber"].(string) {
			at++
		}
	case "AT_TIMESTAMP":
		from := c.in["Timestamp"].(float64)
		for at < len(sh.records) && float64(createdOf(sh.records[at])) < from {
			at++
		}
	default:
		return refuse("ValidationException", "Invalid ShardIteratorType")
	}
	return &wireReply{body: fmt.Sprintf(`{"ShardIterator":%q}`, w.token(sh, at))}
}

func (w *wire) token(sh *wireShard, at int) string {
	return fmt.Sprintf("%s|%d|%d", sh.id, at, time.Now().UnixMilli())
}

func (w *wire) records(c wireCall) *wireReply {
	part := strings.Split(c.in["ShardIterator"].(string), "|")
	sh := w.find(part[0])
	at, _ := strconv.Atoi(part[1])
	born, _ := strconv.ParseInt(part[2], 10, 64)
	if sh == nil {
		return refuse("ResourceNotFoundException", "Shard does not exist")
	}
	if time.Since(time.UnixMilli(born)) > w.lifetime {
		return refuse("ExpiredIteratorException", "The iterator has expired")
	}
	end := min(len(sh.records), at+int(c.in["Limit"].(float64)))
	next := fmt.Sprintf(`,"NextShardIterator":%q`, w.token(sh, end))
	if sh.closed && end == len(sh.records) {
		next = ""
	}
	return &wireReply{body: fmt.Sprintf(`{"Records":[%s]%s}`, strings.Join(sh.records[at:end], ","), next)}
}

func sequenceOf(rec string) string {
	r, _ := change.ScanRecord([]byte(rec))
	return string(r.SequenceNumber)
}

func createdOf(rec string) int64 {
	r, _ := change.ScanRecord([]byte(rec))
	return int64(r.Created / 1000)
}

// count returns how many calls were of that operation and of that kind, if one is given.
func (w *wire) count(op, kind string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.op == op && (kind == "" || c.kind == kind) {
			n++
		}
	}
	return n
}

// direct is a transport without a network: for virtual time, where a socket would be real time.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, r)
	res := rec.Result()
	if n, err := strconv.ParseInt(res.Header.Get("Content-Length"), 10, 64); err == nil {
		res.ContentLength = n
	}
	return res, nil
}

type testSource struct {
	*Source
	logs *observer.ObservedLogs
	reg  *prometheus.Registry
}

// open connects to a handler in memory, or to an address.
func open(t testing.TB, to any, opts ...func(*Options)) testSource {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	o := Options{Region: "eu-west-1", Endpoint: "http://127.0.0.1"}
	switch to := to.(type) {
	case http.Handler:
		o.HTTPClient = direct{to}
	case string:
		o.Endpoint = to
	}
	for _, f := range opts {
		f(&o)
	}
	core, logs := observer.New(zap.DebugLevel)
	reg := prometheus.NewRegistry()
	s, err := Open(t.Context(), o, zap.New(core), reg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return testSource{s, logs, reg}
}

var testSchema = change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}

func start(shard string, pos change.Position) Start {
	return Start{Feed: change.Feed{Stream: "arn", Shard: shard}, Table: "T", Schema: testSchema, Position: pos}
}

func sequences(p *Page) (out []string) {
	for _, r := range p.Records {
		out = append(out, string(r.SequenceNumber))
	}
	return out
}
