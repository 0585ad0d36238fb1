package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
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

// table is the table Orders in a sandbox, with its log and its target, which outlive the lives of
// the table.
type table struct {
	*sandbox.World
	t        *testing.T
	source   *source.Source
	queue    *queue.Queue
	client   *bigtable.Client
	info     source.TableInfo
	program  *transform.Program
	mapping  string
	onTTL    string
	periods  ingest.Periods
	lanes    int
	archive  Archive
	retry    time.Duration
	owned    func() error
	idlePoll time.Duration
	log      *zap.Logger
}

const targetTable = "orders"

// newTable makes the table. set may change the rest before anything is opened.
func newTable(t *testing.T, set func(*table)) *table {
	t.Helper()
	t.Parallel()
	x := &table{
		t: t, lanes: 8, retry: 50 * time.Millisecond, idlePoll: 20 * time.Millisecond,
		log: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel)),
	}
	x.periods = ingest.Periods{
		Beat: 50 * time.Millisecond, Mark: 10 * time.Millisecond, Trim: 200 * time.Millisecond, Listing: time.Hour,
		Describe: 50 * time.Millisecond, Proof: 20 * time.Millisecond, Shutdown: 20 * time.Second,
	}
	if set != nil {
		set(x)
	}
	x.World = sandbox.NewWorld(t, sandbox.WorldOptions{Options: sandbox.Options{
		Clock: clock.New(), Seed: 1, Partitions: 2, NoNATS: true,
	}})
	x.CreateTable("Orders")
	x.Call("UpdateTimeToLive", `{"TableName":"Orders","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}`)
	ctx, reg := t.Context(), prometheus.NewRegistry()
	var err error
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	x.source, err = source.Open(ctx, source.Options{
		Region: sandbox.Region, Endpoint: x.Endpoint(), IdlePoll: x.idlePoll, ReadsPerShard: 100, Tables: 1,
		DateTrust: -1,
	}, x.log, reg)
	must(err)
	t.Cleanup(x.source.Close)
	x.queue, err = queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20}, x.log, reg)
	must(err)
	t.Cleanup(func() { _ = x.queue.Close() })
	x.client, err = bigtable.Open(ctx, bigtable.Options{
		Project: "local", Instance: "local", Endpoint: x.Bigtable.Addr(), Now: func() time.Time { return x.now().Time() },
		Pipeline: "shop",
	}, x.log, reg)
	must(err)
	t.Cleanup(func() { _ = x.client.Close() })
	x.info, err = x.source.Table(ctx, "Orders")
	must(err)
	x.compile(x.mapping)
	data := []tableschema.Table{{Name: targetTable, Families: x.program.Families()}}
	_, err = x.client.Ensure(ctx, tableschema.Tables(data, 7*24*time.Hour))
	must(err)
	_, err = x.queue.CreateLog(ctx, "Orders", "token")
	must(err)
	return x
}

// compile makes the program of a mapping; that of the preset for "".
func (x *table) compile(mapping string) {
	x.t.Helper()
	to := transform.Table{
		Pipeline: "shop", Source: "Orders", Target: targetTable, Schema: x.info.Schema, View: x.info.View, TTLAttr: "ttl",
		StripGlobal: true, OnTTLExpiry: x.onTTL,
	}
	if mapping != "" {
		m, problems := transform.ParseMapping("mapping.yaml", []byte(mapping))
		if m == nil {
			x.t.Fatal(problems)
		}
		to.Mapping = m
	}
	p, problems := transform.Compile(to)
	if p == nil {
		x.t.Fatal(problems)
	}
	x.program = p
}

func (x *table) now() change.Millis {
	if ms, ok := x.source.Now(); ok {
		return ms
	}
	return change.MillisOf(time.Now())
}

// life is a life of the table: reading, writing, and the sinks.
type owner struct {
	*table
	in      *ingest.Ingest
	sinks   []*Sink
	sink    *Sink // Bigtable
	letters *DeadLetters
	shared  *Shared
	writer  *queue.Writer
	cancel  context.CancelFunc
	ended   chan error
}

// row is a row in Bigtable whose reservation is never exhausted.
type row struct{}

func (row) Agrees() bool                                 { return true }
func (row) Reserved() time.Duration                      { return time.Hour }
func (row) Reserve(context.Context, time.Duration) error { return nil }
func (row) Adopt(context.Context, string) error          { return nil }

// begin starts a life. The first one stores where the shards start.
func (x *table) begin() *owner {
	x.t.Helper()
	ctx := x.t.Context()
	must := func(err error) {
		x.t.Helper()
		if err != nil {
			x.t.Fatal(err)
		}
	}
	log, err := x.queue.Log(ctx, "Orders")
	must(err)
	w, err := log.Claim(ctx, queue.ClaimOptions{Owner: "me", TTL: time.Millisecond})
	must(err)
	if w.State().LiveStream() == nil {
		ls, err := x.source.List(ctx, x.info.StreamARN)
		must(err)
		start := &checkpoint.Start{Stream: ls.Stream, Date: ls.Started, Shards: ingest.ListedShards(ls.Shards)}
		must(ingest.AppendStart(ctx, w, start, x.queue.MaxPayload()))
	}
	l := &owner{table: x, writer: w, ended: make(chan error, 1)}
	l.shared = NewShared(Limits{Memory: 64 << 20, Lanes: x.lanes, Calls: x.lanes}, x.client, x.now)
	agreed := make(chan struct{})
	close(agreed)
	o := Options{
		Life:  &life.Life{Source: "Orders", Target: targetTable, Info: x.info, Log: log, Logger: x.log, MayWrite: x.owned},
		Table: Table{Program: x.program}, Archive: x.archive, Retry: x.retry, Agreed: agreed,
		Stats:     NewMetrics(nil).Table("Orders", x.log),
		Retention: func() (time.Duration, bool) { return 0, false },
	}
	l.letters, err = OpenDeadLetters(ctx, l.shared, o)
	must(err)
	_, leaving := life.WithLeaving(ctx, nil)
	reads := life.New(leaving, time.Minute)
	defer reads.Close()
	reads.Info, reads.Logger = x.info, x.log
	reads.Info.Name = "Orders"
	l.in = ingest.New(ingest.Options{
		Life: reads, Source: x.source, MaxPayload: x.queue.MaxPayload(), Periods: x.periods, Row: row{},
		Observe: func(*checkpoint.State, queue.Pressure) {}, Beating: func(bool) {},
	}, w, queue.Pressure{})
	o.Append = l.in.Append
	l.sinks = New(l.shared, o, l.letters, w.State())
	l.sink = l.sinks[0]
	l.run()
	return l
}

func (l *owner) run() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.Watch.Patience = time.Minute
	l.Watch.State = func() any { return l.in.Unproven() }
	l.Watch.Err = func() error {
		if len(l.ended) == 0 {
			return nil
		}
		err := <-l.ended
		l.ended <- err
		return fmt.Errorf("the life ended: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	marked := make([]ingest.Sink, len(l.sinks))
	for i, s := range l.sinks {
		marked[i] = s
		g.Go(func() error { return s.Run(ctx) })
	}
	g.Go(func() error { return l.in.Read(ctx) })
	g.Go(func() error { return l.in.List(ctx) })
	g.Go(func() error { return l.letters.Watch(ctx, 50*time.Millisecond) })
	g.Go(func() error {
		_, err := l.in.Write(ctx, marked)
		return err
	})
	go func() { l.ended <- g.Wait() }()
	l.t.Cleanup(l.stop)
}

// stop ends the life as a crash does.
func (l *owner) stop() {
	l.cancel()
	err := <-l.ended
	l.ended <- err
	crashed := errors.Is(err, context.Canceled) || errors.Is(err, queue.ErrOutcomeUnknown) ||
		errors.Is(err, archive.ErrAway)
	if err != nil && !crashed {
		l.t.Errorf("the life ended: %v", err)
	}
}

// prove waits for a proof, while the service's time goes on.
func (l *owner) prove(through change.Millis) {
	l.t.Helper()
	done := make(chan error, 1)
	go func() { done <- l.in.Prove(l.t.Context(), through) }()
	l.untilMoving("all is applied", func() bool { return len(done) > 0 })
	if err := <-done; err != nil {
		l.t.Fatal(err)
	}
}

// untilMoving waits for a fact, while the service's time goes on ten times as fast.
func (l *owner) untilMoving(what string, fact func() bool) {
	l.t.Helper()
	l.Until(what, func() bool {
		if fact() {
			return true
		}
		l.Clock.Advance(250 * time.Millisecond)
		return fact()
	})
}

// settle waits until everything written so far is applied.
func (l *owner) settle() { l.t.Helper(); l.prove(change.MillisOf(l.Clock.Now()) + 1000) }

// read reads an item strongly.
func (l *owner) read(pk, sk string) *ResyncItem {
	l.t.Helper()
	keys := fmt.Appendf(nil, `{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk)
	b, err := l.source.ReadItems(l.t.Context(), "Orders", [][]byte{keys})
	if err != nil {
		l.t.Fatal(err)
	}
	return &ResyncItem{
		Keys: keys, Hash: change.HashKey(keys), Item: b.Items[0], Version: protocol.Version(b.Requested, 0),
		Requested: b.Requested, ReadAt: b.At,
	}
}

// readLater is read in a minute and a half: the version is above those of all changes so far.
func (l *owner) readLater(pk, sk string) *ResyncItem {
	l.t.Helper()
	l.Clock.Advance(90 * time.Second)
	item := l.read(pk, sk)
	l.prove(item.Requested + 1000)
	return item
}

func (l *owner) resync(item *ResyncItem) ResyncOutcome {
	l.t.Helper()
	out, err := l.sink.Resync(l.t.Context(), item)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// expire lets DynamoDB's TTL delete the items whose attribute ttl has passed.
func (x *table) expire() {
	x.t.Helper()
	x.DynamoDB.ExpireNow(x.Clock.Now())
}

// equal compares the source with Bigtable, cell by cell, as a plain reader sees them.
func (x *table) equal() {
	x.t.Helper()
	if diff := cmp.Diff(x.projected(), x.stored()); diff != "" {
		x.t.Errorf("source (-) and Bigtable (+) differ:\n%s", diff)
	}
}

func (x *table) projected() map[string][]string {
	x.t.Helper()
	rows, dec := map[string][]string{}, new(change.Decoder)
	for _, raw := range x.Items("Orders") {
		dec.Reset()
		img, err := dec.Image(raw)
		if err != nil {
			x.t.Fatal(err)
		}
		projected, err := x.program.Project(img)
		if err != nil {
			x.t.Fatalf("project %s: %v", raw, err)
		}
		for _, row := range projected {
			for _, c := range row.Cells {
				rows[string(row.Key)] = append(rows[string(row.Key)], fmt.Sprintf("%s:%q=%q", c.Family, c.Qualifier, c.Value))
			}
		}
	}
	return sortedCells(rows)
}

func (x *table) stored() map[string][]string {
	x.t.Helper()
	var views []bigtable.View
	for _, f := range x.program.Families() {
		views = append(views, bigtable.View{Family: f.Name, Versions: 1})
	}
	rows := map[string][]string{}
	err := x.client.Rows(x.t.Context(), targetTable, "", "", views, func(row *bigtable.Row) error {
		for _, c := range row.Cells {
			rows[string(row.Key)] = append(rows[string(row.Key)], fmt.Sprintf("%s:%q=%q", c.Family,
				bytes.Clone(c.Qualifier), c.Value))
		}
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return sortedCells(rows)
}

func sortedCells(rows map[string][]string) map[string][]string {
	for _, cells := range rows {
		slices.Sort(cells)
	}
	return rows
}

// storedLetters returns the dead letters in the store.
func (l *owner) storedLetters() (ids []string) {
	l.t.Helper()
	for x, err := range l.letters.stored.All(l.t.Context()) {
		if err != nil {
			l.t.Fatal(err)
		}
		ids = append(ids, x.ID)
	}
	return ids
}
