package dryrun

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestMain(m *testing.M) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.Setenv(name, "sandbox"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// strict refuses an item whose attribute n is no integer of 64 bits, and drops items that begin
// with "x".
const strict = `families: {d: {max_versions: 1}}
rules:
- name: dropped
  match: {pk: "x{rest}"}
  drop: true
- name: item
  match: {pk: "{p}"}
  row: "{p}#{sk}"
  cells: [{attr: n, to: "d:n", as: int64}, {attr: v, to: "d:v"}]
`

// rig is a sandbox without Bigtable and NATS, and a dry run of one of its tables.
type rig struct {
	*sandbox.World
	t   *testing.T
	src *source.Source

	mu    sync.Mutex
	calls map[string]int // of the dry run, by operation
	last  *Report
	ended chan struct{}
	stop  context.CancelFunc
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	r := &rig{t: t, calls: map[string]int{}}
	r.World = sandbox.NewWorld(t, sandbox.WorldOptions{Options: sandbox.Options{
		Seed: 1, Partitions: 2, NoBigtable: true, NoNATS: true,
	}})
	r.DynamoDB.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
			if strings.Contains(req.UserAgent(), "tailrace") {
				r.mu.Lock()
				r.calls[op]++
				r.mu.Unlock()
			}
			next.ServeHTTP(w, req)
		})
	})
	r.CreateTable("Orders")
	var err error
	r.src, err = source.Open(t.Context(), source.Options{
		Region: "us-east-1", Endpoint: r.Endpoint(), IdlePoll: 20 * time.Millisecond, ReadsPerShard: 100,
		DateTrust: -1,
	}, zaptest.NewLogger(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.src.Close)
	return r
}

// run begins a dry run.
func (r *rig) run(horizon bool) {
	r.t.Helper()
	info, err := r.src.Table(r.t.Context(), "Orders")
	if err != nil {
		r.t.Fatal(err)
	}
	mapping, problems := transform.ParseMapping("mapping.yaml", []byte(strict))
	if mapping == nil {
		r.t.Fatal(problems)
	}
	program, problems := transform.Compile(transform.Table{
		Pipeline: "shop", Source: "Orders", Target: "orders", Mapping: mapping, Schema: info.Schema, View: info.View,
		OnTTLExpiry: "delete",
	})
	if program == nil {
		r.t.Fatal(problems)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	r.stop, r.ended = cancel, make(chan struct{})
	r.t.Cleanup(cancel)
	go func() {
		defer close(r.ended)
		report, err := Run(ctx, Options{
			Source: r.src, Tables: []Table{{Source: "Orders", Target: "orders", Info: info, Program: program}},
			Horizon: horizon, Listing: 50 * time.Millisecond, Every: 10 * time.Millisecond, Logger: zaptest.NewLogger(r.t),
			Show: r.show,
		})
		if err != nil {
			r.t.Error(err)
		}
		r.show(report)
	}()
}

func (r *rig) show(report *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = report
}

func (r *rig) table() TableReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return TableReport{}
	}
	return r.last.Tables[0]
}

// untilRead waits until a number of records is counted, ends the dry run and returns its report.
func (r *rig) untilRead(records int64) *Report {
	r.t.Helper()
	r.Until(fmt.Sprintf("%d records are read", records), func() bool { return r.table().Records >= records })
	r.stop()
	<-r.ended
	return r.last
}

// TestDryRunCountsWhatARunWouldWrite: the counts are those of the mapping, through splits, and show
// no content.
func TestDryRunCountsWhatARunWouldWrite(t *testing.T) {
	r := newRig(t)
	for i := range 60 {
		r.Put("Orders", fmt.Sprint("order", i%20), "a", fmt.Sprintf(`"n":{"N":"%d"},"v":{"S":"some text"}`, i))
	}
	r.run(true)
	r.Until("the first records are read", func() bool { return r.table().Records == 60 })
	for _, shard := range r.Stream.OpenShards("Orders") {
		if _, err := r.Stream.Split(shard, 2); err != nil {
			t.Fatal(err)
		}
	}
	const secret = "hunter2"
	for i := range 10 {
		r.Put("Orders", fmt.Sprint(secret, i), "a", `"n":{"N":"1.5"},"v":{"S":"`+secret+`"}`) // refused
		r.Put("Orders", fmt.Sprint("x", i), "a", `"n":{"N":"1"}`)                             // dropped
	}
	for i := range 5 {
		r.Delete("Orders", fmt.Sprint("order", i), "a")
	}
	report := r.untilRead(85)
	x := report.Tables[0]
	if x.Records != 85 || x.Rows != 65 || x.Cells != 120 || x.Left != 5 || x.Refused != 10 || x.Ignored != 10 ||
		x.TTL != 0 {
		t.Errorf("%+v", x)
	}
	if len(x.Refusals) != 1 || x.Refusals[0].Count != 10 || x.Refusals[0].Code == "" || x.Refusals[0].Reason == "" {
		t.Errorf("refusals %+v", x.Refusals)
	}
	if x.Shards.Reading != 4 || x.Shards.Waiting != 0 || x.Shards.Gaps != 0 {
		t.Errorf("shards %+v", x.Shards)
	}
	if len(x.HotPartitions) == 0 || x.HotPartitions[0].Writes < 3 || x.ItemSizes.P50 < 40 || x.RowSizes.Max < 10 {
		t.Errorf("hot %+v, items %+v, rows %+v", x.HotPartitions, x.ItemSizes, x.RowSizes)
	}
	if report.Estimate.Nodes != 1 || report.Estimate.Dollars.Nodes < 400 || len(report.Warnings) == 0 {
		t.Errorf("estimate %+v", report.Estimate)
	}
	text, err := json.Marshal(report)
	if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(text), "order1") {
		t.Errorf("the report shows items: %s %v", text, err)
	}
}

// TestDryRunFromNowSkipsThePast, and counts what DynamoDB's TTL deletes.
func TestDryRunFromNowSkipsThePast(t *testing.T) {
	r := newRig(t)
	r.Call("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	for i := range 8 {
		r.Put("Orders", fmt.Sprint("old", i), "a", fmt.Sprintf(`"n":{"N":"1"},"expires":{"N":"%d"}`,
			r.Clock.Now().Add(time.Minute).Unix()))
	}
	r.Clock.Advance(2 * time.Minute)
	r.run(false)
	r.Until("the open shards are read", func() bool { return r.table().Reads >= 4 })
	if _, err := r.Console.Do(t.Context(), "expire", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	x := r.untilRead(8).Tables[0]
	if x.Records != 8 || x.TTL != 8 || x.TTLRate <= 0 || x.Rows != 8 {
		t.Errorf("%+v", x)
	}
}

// Rule 13: one answer that a shard is gone, that nothing follows in it, or that it may not be read
// ends nothing.
func TestDryRunIsNotEndedByOneAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"gone":    `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"not found"}`,
		"trimmed": `{"__type":"com.amazonaws.dynamodb.v20120810#TrimmedDataAccessException","message":"trimmed"}`,
		"denied":  `{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException","message":"denied"}`,
		"end":     `{"Records":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Put("Orders", "first", "a", `"n":{"N":"1"}`)
			var wrong atomic.Int64 // answers still to be given
			r.DynamoDB.Use(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".GetRecords") || wrong.Add(-1) < 0 {
						next.ServeHTTP(w, req)
						return
					}
					if name != "end" {
						w.WriteHeader(http.StatusBadRequest)
					}
					_, _ = io.WriteString(w, answer)
				})
			})
			r.run(true)
			r.Until("it reads", func() bool { return r.table().Records == 1 })
			wrong.Store(1)
			r.Until("the answer was given", func() bool { return wrong.Load() <= 0 })
			for i := range 20 {
				r.Put("Orders", fmt.Sprint("later", i), "a", `"n":{"N":"1"}`)
			}
			if x := r.untilRead(21).Tables[0]; x.Records != 21 || x.Shards.Gaps != 0 || x.Shards.Reading != 2 {
				t.Errorf("%d records, shards %+v", x.Records, x.Shards)
			}
		})
	}
}

// TestDryRunOnlyReads: every call that it makes is one that reads a stream or describes a table.
func TestDryRunOnlyReads(t *testing.T) {
	r := newRig(t)
	r.Put("Orders", "a", "b", `"n":{"N":"1"}`)
	before, _ := r.Ledger.Count("Orders")
	r.run(true)
	r.Until("the first record is read", func() bool { return r.table().Records == 1 })
	r.Stream.Rotate("Orders")
	r.Put("Orders", "c", "d", `"n":{"N":"1"}`)
	r.untilRead(2)
	reads := map[string]bool{
		"DescribeTable": true, "DescribeTimeToLive": true, "DescribeStream": true, "GetShardIterator": true,
		"GetRecords": true,
	}
	for op, n := range r.calls {
		if !reads[op] {
			t.Errorf("%d calls of %s", n, op)
		}
	}
	if r.calls["GetRecords"] == 0 {
		t.Error("the calls of the dry run were not seen")
	}
	if after, _ := r.Ledger.Count("Orders"); after != before+1 || len(r.Items("Orders")) != 2 {
		t.Errorf("%d changes, then %d", before, after)
	}
}
