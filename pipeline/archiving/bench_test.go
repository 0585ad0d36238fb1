package archiving

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// BenchmarkArchive stores events of 1 KB in the archive's stream, in one process with the server, and archives them in
// Parquet in a directory. It reports the CPU of both steps for an event, server and fsync included, events per second
// of each, and the heap. With 24 hours, 24 shards are read at once, each in another hour, as after a day's outage.
func BenchmarkArchive(b *testing.B) {
	for _, hours := range []int{1, 24} {
		b.Run(fmt.Sprintf("%d_hours", hours), func(b *testing.B) {
			for range b.N {
				archiveEvents(b, 400_000, hours)
			}
		})
	}
}

func archiveEvents(b *testing.B, events, hours int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	q, err := queue.Open(ctx, queue.Options{
		Pipeline: "bench", Dir: b.TempDir(), ArchiveMaxBytes: 4 << 30, MaxBytes: 1 << 30,
	}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	log, err := q.CreateLog(ctx, "Sessions", "token")
	if err != nil {
		b.Fatal(err)
	}
	dir, err := bucket.Open(ctx, "file://"+b.TempDir(), bucket.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	begin := layout.Hour(494_000)
	now := change.Millis(begin.Time().UnixMilli())
	a := New(Options{
		Place: Place{
			Objects: dir, Form: object.Options{Format: object.Parquet, Pipeline: "bench"}, Once: new(Once), Roll: time.Hour,
		},
		Pipeline: "bench", Table: "Sessions", Owner: "b", Epoch: 1, Open: log.Archive, Retry: time.Second,
		Now: func() change.Millis { return now }, Facts: func(layout.Hour) Facts { return Facts{} },
		Halt:  func(context.Context, string, string, string) error { return nil },
		Clear: func(context.Context, string) error { return nil }, Metrics: NewMetrics(nil), Logger: zap.NewNop(),
	})
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	batch := make([]ledger.Record, 0, 1024)
	began, cpu := time.Now(), cpuTime()
	for n := range events {
		batch = append(batch, ledger.Record{Event: benchEvent(n, begin+layout.Hour(n%24%hours))})
		if len(batch) == cap(batch) || n == events-1 {
			if err := a.Store(ctx, batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(events)/1e3, "µs-cpu-store/event")
	b.ReportMetric(float64(events)/time.Since(began).Seconds(), "stored/s")
	began, cpu = time.Now(), cpuTime()
	a.Passed(change.Millis((begin + layout.Hour(hours) + 1).Time().UnixMilli())) // the hours are over
	heap := uint64(0)
	for a.Status().Closed == "" {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapInuse)
		if err := failure.Pause(ctx, 50*time.Millisecond); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(events)/1e3, "µs-cpu-objects/event")
	b.ReportMetric(float64(events)/time.Since(began).Seconds(), "archived/s")
	b.ReportMetric(float64(heap)/(1<<20), "MiB-heap")
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// benchEvent returns an event with an item of 1 KB that compresses to about half.
func benchEvent(n int, hour layout.Hour) *transform.Event {
	item := fmt.Appendf(nil, `{"pk":{"S":"session#%09d"},"expires":{"N":"%d"},"user":{"S":"user-%d"},"data":{"B":"`,
		n, n, n%977)
	for k := range 12 {
		sum := sha256.Sum256([]byte(strconv.Itoa(n*31 + k%6)))
		item = base64.StdEncoding.AppendEncode(item, sum[:])
	}
	item = append(item, `"},"notes":{"S":"`+strings.Repeat("the quick brown fox jumps over the lazy dog; ", 4)+`"}}`...)
	return &transform.Event{
		Class: transform.ClassTTL, Table: "Sessions", Source: "arn:aws:dynamodb:eu-west-1:1:table/Sessions",
		Subject: fmt.Sprintf(`{"pk":{"S":"session#%09d"}}`, n), Stream: "2026-05-04T00:00:00.000",
		Shard:    fmt.Sprintf("shardId-%020d-0a1b2c3d", n%24),
		Sequence: change.SequenceNumber(fmt.Sprintf("%021d", 100_000_000+n)),
		Version:  change.Version(n), Created: change.Millis(hour.Time().UnixMilli()), Item: item, Expiry: strconv.Itoa(n),
	}
}

// cpuTime returns the CPU time of this process, in nanoseconds.
func cpuTime() int64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return r.Utime.Nano() + r.Stime.Nano()
}
