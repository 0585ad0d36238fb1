package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/queue"
	sandbigtable "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/s3"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

const (
	// patience is how long a test waits while nothing moves.
	patience = 60 * time.Second
	// longest is how long it waits while changes are read and applied: a busy machine slows
	// everything down.
	longest = 15 * patience
)

// world is a DynamoDB, a Bigtable and a queue directory, which outlive the pipelines that run on
// them.
type world struct {
	t        *testing.T
	clock    *clock.Clock
	ledger   *ledger.Ledger
	streams  *stream.Engine
	tables   *dynamo.Server
	front    *sandbigtable.Front
	buckets  *s3.Store  // for exports
	s3       *s3.Server // of buckets; nil: none
	faults   *fault.HTTP
	http     *httptest.Server
	dir      string
	opts     func(*pipeline.Options)
	mapping  string
	onTTL    string
	reject   string
	viewType string // of the streams
	backfill pipeline.Backfill
	onGap    string
	lead     time.Duration // Periods.Lead; 0: the default
	claimTTL time.Duration // Periods.ClaimTTL
	qopts    func(*queue.Options)
	profile  string // of copies
	sopts    func(*source.Options)
	archive  *archiving.Place
	log      *zap.Logger
	logged   *observer.ObservedLogs // what the pipelines logged
	load     *load                  // beside the pipeline
}

func TestMain(m *testing.M) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.Setenv(name, "sandbox"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// long skips the test with -short. why says what it costs.
func long(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("long: %s; make test runs it", why)
	}
}

// patient gives Bigtable as long to answer before a claim as outside of tests, 5 s. A table goes on
// by its log alone after that, and what its row would refuse only halts it then: on a busy machine
// 2 s may be over.
func (w *world) patient() { w.claimTTL = 15 * time.Second }

// newWorld makes a world. Worlds share nothing, and their tests mostly wait: they run side by side.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, clock: clock.New(), dir: t.TempDir(), viewType: "NEW_AND_OLD_IMAGES", reject: "letter",
		backfill: pipeline.Backfill{From: "none"}, load: &load{}, claimTTL: 2 * time.Second}
	const seed = 1
	w.ledger = ledger.New(stream.Numbers(seed))
	w.streams = stream.New(stream.Options{Clock: w.clock, Ledger: w.ledger, Seed: seed})
	var err error
	if w.buckets, err = s3.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	w.tables = dynamo.New(dynamo.Options{Stream: w.streams, Clock: w.clock, Buckets: w.buckets})
	w.faults = fault.New(w.clock, seed)
	w.tables.Use(func(next http.Handler) http.Handler { return w.faults.Wrap(next) })
	w.http = httptest.NewServer(w.tables)
	t.Cleanup(w.http.Close)
	if w.front, err = sandbigtable.Open(sandbigtable.Options{Addr: "127.0.0.1:0", Seed: seed}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.front.Close() })
	core, logged := observer.New(zap.InfoLevel)
	w.logged = logged
	w.log = zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel),
		zaptest.WrapOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
			return zapcore.NewTee(c, core)
		})))
	return w
}

// post calls DynamoDB as any client would.
func (w *world) post(op, body string) {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, w.http.URL, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=sandbox/20261121/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
	req.Header.Set("X-Amz-Date", w.clock.Now().UTC().Format("20060102T150405Z"))
	rec := httptest.NewRecorder()
	w.tables.ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		w.t.Fatalf("%s: %d %s", op, rec.Code, rec.Body)
	}
}

func (w *world) createTable(name string) {
	w.t.Helper()
	w.post("CreateTable",
		fmt.Sprintf(`{"TableName":%q,"AttributeDefinitions":[
		{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
		"BillingMode":"PAY_PER_REQUEST",
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":%q}}`, name, w.viewType))
}

func (w *world) put(table, pk, sk, attrs string) {
	w.t.Helper()
	if attrs != "" {
		attrs = "," + attrs
	}
	w.post("PutItem", fmt.Sprintf(`{"TableName":%q,"Item":{"pk":{"S":%q},"sk":{"S":%q}%s}}`, table, pk, sk, attrs))
}

func (w *world) delete(table, pk, sk string) {
	w.t.Helper()
	w.post("DeleteItem", fmt.Sprintf(`{"TableName":%q,"Key":{"pk":{"S":%q},"sk":{"S":%q}}}`, table, pk, sk))
}

// run is a pipeline at work.
type run struct {
	*world
	p      *pipeline.Pipeline
	queue  *queue.Queue
	src    *source.Source
	sink   *bigtable.Client
	reg    *prometheus.Registry
	cancel context.CancelFunc
	ended  chan error
	names  []string
	views  sync.Map // of stored, by table and mapping

	hastened     time.Time
	copiedBefore int64 // items, at the last call of hasten
}

func (w *world) compile(name string) func(source.TableInfo) (*transform.Program, error) {
	return func(info source.TableInfo) (*transform.Program, error) {
		t := transform.Table{
			Pipeline: "shop", Source: name, Target: target(name), Schema: info.Schema, View: info.View,
			TTLAttr: info.TTLAttr, StripGlobal: true, OnTTLExpiry: w.onTTL,
		}
		if w.mapping != "" {
			m, problems := transform.ParseMapping("mapping.yaml", []byte(w.mapping))
			if len(problems) > 0 {
				w.t.Logf("mapping: %v", problems)
			}
			t.Mapping = m
		}
		p, problems := transform.Compile(t)
		if p == nil {
			return nil, fmt.Errorf("compile: %v", problems)
		}
		return p, nil
	}
}

// compileKept compiles a stored mapping.
func (w *world) compileKept(
	name string,
) func(source.TableInfo, []byte) (*transform.Program, []*transform.Program, error) {
	return func(info source.TableInfo, text []byte) (*transform.Program, []*transform.Program, error) {
		t := transform.Table{
			Pipeline: "shop", Source: name, Target: target(name), Schema: info.Schema, View: info.View, TTLAttr: info.TTLAttr,
		}
		var kept transform.Kept
		if err := json.Unmarshal(text, &kept); err != nil {
			return nil, nil, err
		}
		if err := kept.Apply(&t); err != nil {
			return nil, nil, err
		}
		p, problems := transform.Compile(t)
		if p == nil {
			return nil, nil, fmt.Errorf("compile: %v", problems)
		}
		return p, []*transform.Program{p}, nil
	}
}

func (w *world) open(names ...string) *run {
	w.t.Helper()
	return w.openAs(true, names...)
}

func (w *world) openAs(first bool, names ...string) *run {
	w.t.Helper()
	ctx := context.Background()
	reg := prometheus.NewRegistry()
	r := &run{world: w, names: names, reg: reg, ended: make(chan error, 1)}
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	var err error
	so := source.Options{Region: "us-east-1", Endpoint: w.http.URL, Tables: len(names),
		IdlePoll: 50 * time.Millisecond, ReadsPerShard: 100, DateTrust: -1}
	if w.sopts != nil {
		w.sopts(&so)
	}
	r.src, err = source.Open(ctx, so, w.log, reg)
	must(err)
	qo := queue.Options{Pipeline: "shop", Dir: w.dir}
	if w.qopts != nil {
		w.qopts(&qo)
	}
	r.queue, err = queue.Open(ctx, qo, w.log, reg)
	must(err)
	now := func() time.Time {
		if ms, ok := r.src.Now(); ok {
			return ms.Time()
		}
		return time.Now()
	}
	bo := bigtable.Options{Pipeline: "shop", Project: "local", Instance: "local", Endpoint: w.front.Addr(), Now: now,
		CopyProfile: w.profile}
	r.sink, err = bigtable.Open(ctx, bo, w.log, reg)
	must(err)
	o := pipeline.Options{Name: "shop", Owner: "test-" + w.t.Name(), Lanes: 32, Periods: pipeline.Periods{
		ClaimTTL: w.claimTTL, Beat: 100 * time.Millisecond, Listing: 500 * time.Millisecond,
		Describe: 100 * time.Millisecond, Proof: 200 * time.Millisecond,
		Mark: 50 * time.Millisecond, Trim: 200 * time.Millisecond, Retry: 300 * time.Millisecond,
		Recheck: 200 * time.Millisecond, Settle: 20 * time.Millisecond, Report: time.Second,
		Shutdown: 20 * time.Second, Lead: w.lead, Patience: 300 * time.Millisecond,
	}, Scratch: w.t.TempDir()}
	for _, name := range names {
		o.Tables = append(o.Tables, pipeline.Table{
			Source: name, Target: target(name), OnReject: w.reject, Archive: pipeline.Archive{On: w.archive != nil},
			Compile: w.compile(name), CompileKept: w.compileKept(name), Backfill: w.backfill, OnGap: w.onGap,
		})
		if first {
			r.ensure(ctx, name)
		}
	}
	if w.opts != nil {
		w.opts(&o)
	}
	o.Archive = w.archive
	sink := r.sink
	if !slices.ContainsFunc(o.Tables, func(t pipeline.Table) bool { return t.Target != "" }) {
		sink = nil // as in the program: there need be no Bigtable
	}
	r.p = pipeline.New(o, r.src, r.queue, sink, w.log, reg)
	return r
}

func (r *run) ensure(ctx context.Context, name string) {
	r.t.Helper()
	info, err := r.src.Table(ctx, name)
	if err != nil {
		r.t.Fatal(err)
	}
	prog, err := r.compile(name)(info)
	if err != nil {
		r.t.Fatal(err)
	}
	data := tableschema.Table{Name: target(name), Families: prog.Families()}
	if _, err := r.sink.Ensure(ctx, tableschema.Tables([]tableschema.Table{data}, 7*24*time.Hour)); err != nil {
		r.t.Fatal(err)
	}
}

// start runs a pipeline over the named tables until stop.
func (w *world) start(names ...string) *run {
	w.t.Helper()
	r := w.open(names...)
	r.begin()
	return r
}

// restart is start with the target tables as an earlier run made them: Bigtable may be away.
func (w *world) restart(names ...string) *run {
	w.t.Helper()
	r := w.openAs(false, names...)
	r.begin()
	return r
}

// begin runs what open has made.
func (r *run) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.load.of(r)
	go func() { r.ended <- r.p.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		r.close()
	})
}

// stop drains and returns what Run returned.
func (r *run) stop() error {
	r.t.Helper()
	r.cancel()
	err := r.end()
	r.close()
	return err
}

func (r *run) close() {
	<-r.ended
	r.ended <- nil
	_ = r.queue.Close()
	_ = r.sink.Close()
	r.src.Close()
}

// settle waits until everything written so far is applied. A running clock is moved on meanwhile:
// that it is known takes some seconds of the service's time.
func (r *run) settle() {
	r.t.Helper()
	r.settledAt(r.clock.Now())
}

func (r *run) settledAt(at time.Time) {
	r.t.Helper()
	r.until("everything written is applied", func() bool {
		through, ok := r.p.AppliedThrough()
		if !r.clock.Virtual() {
			r.clock.Advance(50 * time.Millisecond)
		}
		return ok && through.After(at)
	})
}

// until waits for an observed fact of a pipeline that goes on.
func (r *run) until(what string, fact func() bool) {
	r.t.Helper()
	r.wait(what, func() bool {
		if fact() {
			return true
		}
		select {
		case err := <-r.ended:
			r.ended <- err
			r.t.Fatalf("waiting until %s: the pipeline ended: %v", what, err)
		default:
		}
		return false
	})
}

// end waits until Run ends, and returns what it returned.
func (r *run) end() (err error) {
	r.t.Helper()
	r.wait("the pipeline ends", func() bool { return r.hasEnded(&err) })
	return err
}

// hasEnded reports whether Run has ended, and sets what it returned.
func (r *run) hasEnded(err *error) bool {
	select {
	case *err = <-r.ended:
		r.ended <- *err
		return true
	default:
		return false
	}
}

// wait waits for a fact, while the pipeline moves. When it fails it names the fact, and what the
// pipeline last said.
func (r *run) wait(what string, fact func() bool) {
	r.t.Helper()
	began := time.Now()
	last, looked, moved := began, began, r.moved()
	for now := began; !fact(); {
		<-time.After(min(max(10*time.Millisecond, 3*time.Since(now)), 250*time.Millisecond)) // looks cost time, too
		now = time.Now()
		if now.Sub(looked) < time.Second { // gathering all metrics at each poll would take more than the pipeline
			continue
		}
		looked = now
		if m := r.moved(); m != moved {
			last, moved = now, m
		}
		if idle, all := now.Sub(last), now.Sub(began); idle > patience || all > longest {
			r.t.Fatalf("waited %v until %s, the last %v without progress; status: %+v",
				all.Round(time.Second), what, idle.Round(time.Second), r.p.Status())
		}
	}
}

// moved changes whenever something is read, applied or claimed.
func (r *run) moved() float64 {
	return r.metric("tailrace_bigtable_calls_total") + r.metric("tailrace_source_records_total") +
		float64(r.logged.FilterMessage("log claimed").Len())
}
