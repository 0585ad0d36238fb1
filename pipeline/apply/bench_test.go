package apply

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// BenchmarkArchiver archives deletions by TTL of items of 1 KB that are in a table's log: it reads
// the log, makes events of them, and stores these. It reports the CPU for an event, with the
// server, which is in this process. With "nowhere" nothing stores the events; with "objects" they
// go through the archive's stream into Parquet in a directory, of one hour or of 24 at once.
func BenchmarkArchiver(b *testing.B) {
	const events = 200_000
	for _, load := range []struct {
		name  string
		hours int
	}{{"nowhere", 0}, {"objects_of_1_hour", 1}, {"objects_of_24_hours", 24}} {
		b.Run(load.name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				x := newBenchLog(b)
				sink := x.archiver(b, load.hours > 0)
				x.fill(b, events, max(load.hours, 1))
				b.StartTimer()
				began, cpu := time.Now(), cpuTime()
				x.copy(b, sink)
				b.ReportMetric(float64(cpuTime()-cpu)/float64(events)/1e3, "µs-cpu/event")
				b.ReportMetric(float64(events)/time.Since(began).Seconds(), "events/s")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// benchLog is the log of a table, which nothing reads.
type benchLog struct {
	queue  *queue.Queue
	writer *queue.Writer
	arch   *archiving.Archiver // nil: nowhere
	over   change.Millis       // when all hours are closed
}

const benchStream = "arn:aws:dynamodb:eu-west-1:1:table/Sessions/stream/2026-01-01T00:00:00.000"

// benchBegin is the begin of the first hour of deletions.
const benchBegin = change.Millis(494_000 * 3_600_000)

func newBenchLog(b *testing.B) *benchLog {
	b.Helper()
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	q, err := queue.Open(ctx, queue.Options{
		Pipeline: "bench", Dir: b.TempDir(), MaxBytes: 2 << 30, ArchiveMaxBytes: 2 << 30,
	}, zap.NewNop(), prometheus.NewRegistry())
	must(err)
	b.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(ctx, "Sessions", "token")
	must(err)
	w, err := log.Claim(ctx, queue.ClaimOptions{Owner: "b", TTL: time.Minute})
	must(err)
	start := &checkpoint.Start{Stream: benchStream, Date: benchBegin}
	for n := range benchShards {
		start.Shards = append(start.Shards, checkpoint.ShardSeen{ID: benchShard(n)})
	}
	must(ingest.AppendStart(ctx, w, start, q.MaxPayload()))
	return &benchLog{queue: q, writer: w}
}

const benchShards = 24

func benchShard(n int) string { return fmt.Sprintf("shardId-%020d-0a1b2c3d", n) }

// nowhere takes events and keeps none.
type nowhere struct{}

func (nowhere) Store(_ context.Context, all []ledger.Record) (int, error) { return len(all), nil }
func (nowhere) Publish(context.Context, archive.Message) error            { return nil }

// archiver returns the sink that copies what is appended from now on.
func (x *benchLog) archiver(b *testing.B, objects bool) *Sink {
	b.Helper()
	program, problems := transform.Compile(transform.Table{
		Pipeline: "bench", Source: "Sessions", Target: "sessions", View: "NEW_AND_OLD_IMAGES",
		Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}, TTLAttr: "expires",
		OnTTLExpiry: "archive",
	})
	if program == nil {
		b.Fatal(problems)
	}
	now := func() change.Millis { return benchBegin }
	o := Options{
		Life:  &life.Life{Source: "Sessions", Target: "sessions", Log: x.writer.Log(), Logger: zap.NewNop()},
		Table: Table{Program: program}, Archive: nowhere{}, Retry: time.Second,
		Stats: NewMetrics(nil).Table("Sessions", zap.NewNop()),
	}
	if objects {
		dir, err := bucket.Open(b.Context(), "file://"+b.TempDir(), bucket.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = dir.Close() })
		x.arch = archiving.New(archiving.Options{
			Place: archiving.Place{
				Objects: dir, Form: object.Options{Format: object.Parquet, Pipeline: "bench"}, Once: new(archiving.Once),
			},
			Pipeline: "bench", Table: "Sessions", Owner: "b", Epoch: 1, Open: o.Log.Archive, Retry: time.Second, Now: now,
			Facts: func(layout.Hour) archiving.Facts { return archiving.Facts{} },
			Halt:  func(context.Context, string, string, string) error { return nil },
			Clear: func(context.Context, string) error { return nil }, Metrics: archiving.NewMetrics(nil), Logger: zap.NewNop(),
		})
		o.Archive = x.arch
	}
	shared := NewShared(Limits{Memory: 64 << 20, Lanes: 8, Calls: 8}, nil, now)
	letters, err := OpenDeadLetters(b.Context(), shared, o)
	if err != nil {
		b.Fatal(err)
	}
	return New(shared, o, letters, x.writer.State())[1]
}

// fill appends deletions in pages of 400 of a shard, of which each is in one hour.
func (x *benchLog) fill(b *testing.B, events, hours int) {
	b.Helper()
	for n := 0; n < events; {
		shard := n / 400 % benchShards
		p := x.page(b, shard, n, min(400, events-n), benchBegin+change.Millis(shard%hours)*3_600_000)
		n += len(p.Records)
		frames, err := frame.Pack([]*change.Page{p}, x.queue.MaxPayload())
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range frames {
			if _, err := x.writer.Append(b.Context(), f.Body, f.Data); err != nil {
				b.Fatal(err)
			}
			f.Release()
		}
	}
	x.over = benchBegin + change.Millis(hours+1)*3_600_000
}

func (x *benchLog) page(b *testing.B, shard, from, count int, created change.Millis) *change.Page {
	b.Helper()
	rnd := rand.New(rand.NewPCG(uint64(from), 1))
	var s strings.Builder
	s.WriteString(`{"Records":[`)
	for n := from; n < from+count; n++ {
		if n > from {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"pk":{"S":"s-%09d"}},`+
			`"OldImage":{"pk":{"S":"s-%09d"},"expires":{"N":"%d"}`, created/1000, n, n, created/1000-60)
		for a := range 8 {
			fmt.Fprintf(&s, `,"attribute%d":{"S":"%016x%016x%016x, electrical goods, other goods"}`, a, rnd.Uint64(),
				rnd.Uint64(), rnd.Uint64())
		}
		fmt.Fprintf(&s, `},"SequenceNumber":"1%020d","SizeBytes":1000,"StreamViewType":"NEW_AND_OLD_IMAGES"},`+
			`"eventID":"e%d","eventName":"REMOVE","userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"},`+
			`"eventSource":"aws:dynamodb","eventVersion":"1.1"}`, n, n)
	}
	s.WriteString(`]}`)
	recs, _, err := change.ScanPage([]byte(s.String()), nil)
	if err != nil {
		b.Fatal(err)
	}
	sh := x.writer.State().Shards[benchShard(shard)]
	p := &change.Page{
		Feed: change.Feed{Stream: benchStream, Shard: benchShard(shard)}, From: sh.Pos, ClockFrom: sh.Clock, Date: created,
		Records: recs, Bytes: s.Len(),
	}
	tick := change.Clock(sh.Clock)
	for i := range recs {
		recs[i].Version, recs[i].KeyHash = tick.Next(recs[i].Created), change.HashKey(recs[i].Keys)
		p.To, p.Clock = change.Position{After: change.SequenceNumber(recs[i].SequenceNumber)}, recs[i].Version
	}
	return p
}

// copy runs the sink until it has passed the whole log and, where there are objects, these are
// closed.
func (x *benchLog) copy(b *testing.B, sink *Sink) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	ended := make(chan error, 1)
	if x.arch != nil {
		go func() { ended <- x.arch.Run(ctx) }()
	} else {
		ended <- nil
	}
	sink.Drain(x.writer.State().Seq)
	if err := sink.Run(ctx); err != nil {
		b.Fatal(err)
	}
	if x.arch != nil {
		x.arch.Passed(x.over)
		for x.arch.Status().Closed == "" {
			if err := failure.Pause(ctx, 20*time.Millisecond); err != nil {
				b.Fatal(err)
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// cpuTime returns the CPU time of this process, in nanoseconds.
func cpuTime() int64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return r.Utime.Nano() + r.Stime.Nano()
}
