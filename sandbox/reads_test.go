package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/capacity"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// page is a reply with items.
type page struct {
	Items, Responses json.RawMessage
	Count            int
	LastEvaluatedKey json.RawMessage
	UnprocessedKeys  map[string]struct{ Keys []json.RawMessage }
	ConsumedCapacity json.RawMessage
}

func readPage(t *testing.T, body []byte) (p page) {
	t.Helper()
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return p
}

// readsWorld is a world with a table of n items of about 1 KB.
func readsWorld(t *testing.T, n int, o sandbox.Options) *sandbox.World {
	o.NoBigtable, o.NoNATS = true, true
	w := sandbox.NewWorld(t, sandbox.WorldOptions{Options: o})
	w.CreateTable("Orders")
	for i := range n {
		w.Put("Orders", fmt.Sprint(i), "s", `"body":{"S":"`+strings.Repeat("x", 1000)+`"}`)
	}
	return w
}

// TestConsumedCapacityIsRoundedAsTheServiceDoes: what a page has of a partition is rounded up once,
// and items of a batch each by themselves. The four partitions of the table have 10 KB.
func TestConsumedCapacityIsRoundedAsTheServiceDoes(t *testing.T) {
	w := readsWorld(t, 10, sandbox.Options{})
	const keys = `{"RequestItems":{"Orders":{"Keys":[{"pk":{"S":"1"},"sk":{"S":"s"}},{"pk":{"S":"none"},"sk":{"S":"s"}}],
		"ConsistentRead":%v}},"ReturnConsumedCapacity":"TOTAL"}`
	const scan = `{"TableName":"Orders","ReturnConsumedCapacity":"TOTAL","ConsistentRead":%v}`
	for name, c := range map[string]struct {
		op, body string
		want     float64
	}{
		"strong scan of 10 KB":        {"Scan", fmt.Sprintf(scan, true), 5},
		"eventual scan of 10 KB":      {"Scan", fmt.Sprintf(scan, false), 2.5},
		"strong batch, one is absent": {"BatchGetItem", fmt.Sprintf(keys, true), 2},
		"eventual batch":              {"BatchGetItem", fmt.Sprintf(keys, false), 1},
		"strong get of an absent item": {"GetItem", `{"TableName":"Orders","Key":{"pk":{"S":"no"},
			"sk":{"S":"s"}},"ConsistentRead":true,"ReturnConsumedCapacity":"TOTAL"}`, 1},
	} {
		before := w.DynamoDB.Reads.Units("Orders", time.Time{})
		p := readPage(t, w.Call(c.op, c.body))
		if want := fmt.Sprintf(`"CapacityUnits":%v`, c.want); !strings.Contains(string(p.ConsumedCapacity), want) {
			t.Errorf("%s: %s, want %s", name, p.ConsumedCapacity, want)
		}
		if got := w.DynamoDB.Reads.Units("Orders", time.Time{}) - before; got != c.want {
			t.Errorf("%s: counted %v, want %v", name, got, c.want)
		}
	}
}

func TestReadsBeyondTheCapacityAreRefused(t *testing.T) {
	w := readsWorld(t, 20, sandbox.Options{})
	w.Call("UpdateTable", `{"TableName":"Orders","BillingMode":"PROVISIONED",
		"ProvisionedThroughput":{"ReadCapacityUnits":3,"WriteCapacityUnits":100}}`)
	w.DynamoDB.Reads.Limit("Orders", capacity.Limit{Provisioned: true, Burst: time.Millisecond})
	scan := `{"TableName":"Orders","ConsistentRead":true}`
	w.Call("Scan", scan) // borrows
	_, err := w.Sandbox.Call(t.Context(), "Scan", scan)
	if refused := (*sandbox.CallError)(nil); !errors.As(err, &refused) ||
		refused.Code != "ProvisionedThroughputExceededException" {
		t.Errorf("second scan: %v", err)
	}
	_, err = w.Sandbox.Call(t.Context(), "BatchGetItem",
		`{"RequestItems":{"Orders":{"Keys":[{"pk":{"S":"1"},"sk":{"S":"s"}}]}}}`)
	if refused := (*sandbox.CallError)(nil); !errors.As(err, &refused) ||
		refused.Code != "ProvisionedThroughputExceededException" {
		t.Errorf("batch without a served key: %v", err)
	}
	var shown struct {
		Table struct{ BillingModeSummary struct{ BillingMode string } }
	}
	if err := json.Unmarshal(w.Call("DescribeTable", `{"TableName":"Orders"}`), &shown); err != nil ||
		shown.Table.BillingModeSummary.BillingMode != "PROVISIONED" {
		t.Errorf("billing %+v, %v", shown, err)
	}
}

func TestHotPartitionLeavesItsKeysUnprocessed(t *testing.T) {
	w := readsWorld(t, 40, sandbox.Options{})
	w.DynamoDB.Reads.Limit("Orders", capacity.Limit{Hot: 0.001, Partitions: 2})
	var keys []string
	for i := range 40 {
		keys = append(keys, fmt.Sprintf(`{"pk":{"S":"%d"},"sk":{"S":"s"}}`, i))
	}
	p := readPage(t, w.Call("BatchGetItem",
		`{"RequestItems":{"Orders":{"Keys":[`+strings.Join(keys, ",")+`],"ConsistentRead":true}}}`))
	left := len(p.UnprocessedKeys["Orders"].Keys)
	served := strings.Count(string(p.Responses), `"body"`)
	if left < 5 || left > 35 || served+left != 40 {
		t.Errorf("%d of 40 unprocessed, %d served", left, served)
	}
}

func TestBatchRepliesWithUnprocessedRepeatedAndMixedItems(t *testing.T) {
	w := readsWorld(t, 30, sandbox.Options{Seed: 5})
	var keys []string
	for i := range 30 {
		keys = append(keys, fmt.Sprintf(`{"pk":{"S":"%d"},"sk":{"S":"s"}}`, i))
	}
	get := func() (page, string) {
		p := readPage(t, w.Call("BatchGetItem", `{"RequestItems":{"Orders":{"Keys":[`+strings.Join(keys, ",")+`]}}}`))
		var items struct {
			Orders []struct{ PK struct{ S string } }
		}
		if err := json.Unmarshal(p.Responses, &items); err != nil {
			t.Fatal(err)
		}
		order := ""
		for _, it := range items.Orders {
			order += it.PK.S + " "
		}
		return p, order
	}
	_, straight := get()
	do(t, w, "unprocessed_keys", `{"share":0.5,"times":1}`)
	if p, got := get(); len(p.UnprocessedKeys["Orders"].Keys)+strings.Count(got, " ") != 30 ||
		len(p.UnprocessedKeys["Orders"].Keys) == 0 {
		t.Errorf("half unprocessed: %s", got)
	}
	do(t, w, "unprocessed_keys", `{"share":1}`)
	if p, got := get(); len(p.UnprocessedKeys["Orders"].Keys) != 30 || got != "" {
		t.Errorf("all unprocessed: %s", got)
	}
	do(t, w, "calm", "")
	do(t, w, "disorder", "")
	if _, got := get(); got == straight || len(got) != len(straight) {
		t.Errorf("mixed: %s", got)
	}
	do(t, w, "repeat_items", `{"share":1}`)
	if _, got := get(); len(got) != 2*len(straight) {
		t.Errorf("repeated: %s", got)
	}
}

// do runs a command of the console.
func do(t *testing.T, w *sandbox.World, name, args string) any {
	t.Helper()
	out, err := w.Console.Do(t.Context(), name, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLaggingReadsShowThePast: only reads that are not consistent lag, and deleted items are seen
// again.
func TestLaggingReadsShowThePast(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	w := readsWorld(t, 0, sandbox.Options{Clock: c})
	w.Put("Orders", "old", "s", `"n":{"N":"1"}`)
	do(t, w, "lag_reads", `{"for":"10s"}`)
	c.Advance(time.Minute)
	w.Put("Orders", "old", "s", `"n":{"N":"2"}`)
	w.Put("Orders", "new", "s", "")
	items := func(op, rest string) int {
		return strings.Count(string(w.Call(op, `{"TableName":"Orders"`+rest+`}`)), `"pk"`)
	}
	get := func(consistent bool) string {
		body := w.Call("GetItem", fmt.Sprintf(
			`{"TableName":"Orders","Key":{"pk":{"S":"old"},"sk":{"S":"s"}},"ConsistentRead":%v}`, consistent))
		_, n, _ := strings.Cut(string(body), `"N":"`)
		return strings.TrimSuffix(n, `"}}}`)[:1]
	}
	if items("Scan", "") != 1 || items("Scan", `,"ConsistentRead":true`) != 2 || get(false) != "1" || get(true) != "2" {
		t.Errorf("scans %d and %d, gets %s and %s", items("Scan", ""), items("Scan", `,"ConsistentRead":true`), get(false),
			get(true))
	}
	c.Advance(11 * time.Second)
	if items("Scan", "") != 2 || get(false) != "2" {
		t.Error("the lag does not end")
	}
	w.Delete("Orders", "old", "s")
	if items("Scan", "") != 2 || items("Scan", `,"ConsistentRead":true`) != 1 {
		t.Error("a deleted item is not seen as it was")
	}
}

func TestRepliesWithoutDateWithAnotherAndTruncated(t *testing.T) {
	w := readsWorld(t, 3, sandbox.Options{})
	send := func() (*http.Response, []byte) {
		t.Helper()
		req, _ := http.NewRequest(http.MethodPost, w.Endpoint(), strings.NewReader(`{"TableName":"Orders"}`))
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810.Scan")
		req.Header.Set("Content-Type", "application/x-amz-json-1.0")
		req.Header.Set("X-Amz-Date", "20261121T000000Z")
		req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=host, Signature=0")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, body
	}
	do(t, w, "no_date", `{"operation":"Scan","times":1}`)
	if res, _ := send(); res.Header.Get("Date") != "" {
		t.Errorf("date %s", res.Header.Get("Date"))
	}
	do(t, w, "shift_date", `{"operation":"Scan","times":1,"by":"-1h"}`)
	res, whole := send()
	if at, err := http.ParseTime(res.Header.Get("Date")); err != nil || time.Since(at) < 59*time.Minute {
		t.Errorf("date %v, %v", at, err)
	}
	do(t, w, "truncate", `{"operation":"Scan","times":1}`)
	if _, half := send(); len(half) != len(whole)/2 || json.Valid(half) {
		t.Errorf("%d bytes of %d", len(half), len(whole))
	}
	if res, body := send(); res.Header.Get("Date") == "" || !json.Valid(body) {
		t.Error("the faults go on")
	}
}

func TestCountsOfSomeHoursAgo(t *testing.T) {
	w := readsWorld(t, 3, sandbox.Options{})
	count := func() (n struct {
		Table struct{ ItemCount, TableSizeBytes int64 }
	}) {
		if err := json.Unmarshal(w.Call("DescribeTable", `{"TableName":"Orders"}`), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	do(t, w, "counts", `{"table":"Orders","items":7,"bytes":700}`)
	if n := count().Table; n.ItemCount != 7 || n.TableSizeBytes != 700 {
		t.Errorf("shown %+v", n)
	}
	do(t, w, "counts", `{"table":"Orders","exact":true}`)
	if n := count().Table; n.ItemCount != 3 || n.TableSizeBytes < 3000 {
		t.Errorf("exact %+v", n)
	}
}

// TestRecordTimesAreSkewedAndCut: creation times of records differ from the commit's by up to two
// seconds, or are cut to whole minutes.
func TestRecordTimesAreSkewedAndCut(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC))
	r := newRig(t, sandbox.Options{Clock: c, NoBigtable: true, NoNATS: true, Partitions: 1})
	arn := r.createTable("Orders")
	r.do("record_jitter", `{"within":"2s"}`)
	for i := range 50 {
		r.must(r.put("Orders", "jitter", i))
	}
	r.do("record_jitter", `{"within":"0s"}`)
	r.do("record_cut", `{"to":"1m"}`)
	r.must(r.put("Orders", "cut", 0))
	seen := map[time.Duration]int{}
	for _, at := range r.creationTimes(arn) {
		seen[at.Sub(c.Now())]++
	}
	if seen[-30*time.Second] != 1 || seen[-2*time.Second] == 0 || seen[time.Second] == 0 || len(seen) > 6 {
		t.Errorf("creation times beside the commits' %v", seen)
	}
}

// creationTimes returns the creation times of a stream's records.
func (r *rig) creationTimes(arn string) (all []time.Time) {
	r.t.Helper()
	for _, rec := range r.records(arn) {
		all = append(all, *rec.Dynamodb.ApproximateCreationDateTime)
	}
	return all
}

func TestStreamIsSwitchedByCommand(t *testing.T) {
	r := newRig(t, sandbox.Options{NoBigtable: true, NoNATS: true})
	first := r.createTable("Orders")
	r.do("stream_off", `{"table":"Orders"}`)
	r.must(r.put("Orders", "lost", 1))
	r.do("stream_on", `{"table":"Orders"}`)
	r.must(r.put("Orders", "seen", 1))
	out, err := r.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("Orders")})
	r.must(err)
	second := *out.Table.LatestStreamArn
	if second == first || out.Table.StreamSpecification.StreamViewType != types.StreamViewTypeNewAndOldImages {
		t.Errorf("stream %s, before %s", second, first)
	}
	if n, m := len(r.records(first)), len(r.records(second)); n != 0 || m != 1 {
		t.Errorf("%d records in the first stream, %d in the second", n, m)
	}
}
