package queue

import (
	"context"
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/queue/internal/testpage"
)

// cpu returns what this process has used so far, server included.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perRecord reports CPU and rate per change.
func perRecord(b *testing.B, records int, before time.Duration) {
	used := cpu() - before
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(records), "µs-cpu/record")
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(0, "ns/op")
}

func benchQueue(b *testing.B) *Writer {
	q, err := Open(context.Background(), Options{Pipeline: "bench", Dir: b.TempDir(), MaxBytes: 4 << 30,
		ReplayWindow: -1}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { q.Close() })
	return owned(b, q)
}

// recordBytes makes records of about 2.4 KB of JSON: two images of 1 KB.
const recordBytes = 990

// repeat moves a page to the next position of its feed, without scanning its records again.
func repeat(p *change.Page, s *checkpoint.State, n int) {
	sh := s.Shards["shard-1"]
	p.From, p.ClockFrom = sh.Pos, sh.Clock
	p.To, p.Clock = change.Position{After: testpage.Sequence(n)}, sh.Clock+change.Version(len(p.Records))
}

// BenchmarkAppend packs pages into frames and appends them, fsynced; SHA-256, S2, client and server
// included.
func BenchmarkAppend(b *testing.B) {
	ctx := context.Background()
	for _, kib := range []int{16, 64, 256, 1024} {
		b.Run(fmt.Sprintf("frame=%dKiB", kib), func(b *testing.B) {
			w := benchQueue(b)
			p := pageOf(b, w.State(), max(kib<<10/2400, 1), recordBytes)
			records := 0
			b.ReportAllocs()
			before := cpu()
			for b.Loop() {
				repeat(p, w.State(), records+1)
				frames, err := frame.Pack([]*change.Page{p}, w.Log().q.MaxPayload())
				if err != nil {
					b.Fatal(err)
				}
				for _, f := range frames {
					if _, err := w.Append(ctx, f.Body, f.Data); err != nil {
						b.Fatal(err)
					}
					f.Release()
				}
				records += len(p.Records)
				if records%(len(p.Records)*512) == 0 {
					b.StopTimer()
					markAll(b, w)
					trim(b, w, math.MaxUint64)
					b.StartTimer()
				}
			}
			perRecord(b, records, before)
		})
	}
}

// BenchmarkRead reads frames from the log, checks the chain, unpacks them and calls back with each
// change.
func BenchmarkRead(b *testing.B) {
	ctx := context.Background()
	for _, kib := range []int{2, 64, 256, 1024} {
		b.Run(fmt.Sprintf("frame=%dKiB", kib), func(b *testing.B) {
			w := benchQueue(b)
			p := pageOf(b, w.State(), max(kib<<10/2400, 1), recordBytes)
			total := 0
			for ; total < 100_000; total += len(p.Records) {
				repeat(p, w.State(), total+1)
				for _, f := range mustPack(b, conn.MaxPayload, p) {
					mustAppend(b, w, f.Body, f.Data)
				}
			}
			records := 0
			before := cpu()
			for b.Loop() {
				records += readAll(b, ctx, w)
			}
			perRecord(b, records, before)
		})
	}
}

func readAll(b *testing.B, ctx context.Context, w *Writer) (records int) {
	r, err := w.Log().Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close(ctx)
	var buf []byte
	for last := w.State().Seq; ; {
		seq, e, err := r.Next(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if e.Kind == checkpoint.KindFrame {
			buf, err = frame.Unpack(e, buf, func(*checkpoint.PageHead, *change.Change) error { records++; return nil })
			if err != nil {
				b.Fatal(err)
			}
		}
		if seq >= last {
			return records
		}
	}
}

// BenchmarkPack packs pages into frames, without a log.
func BenchmarkPack(b *testing.B) {
	p := testpage.After(b, change.Position{}, 0, 400, recordBytes)
	records, packed := 0, 0
	before := cpu()
	for b.Loop() {
		for _, f := range mustPack(b, conn.MaxPayload, p) {
			packed += len(f.Data)
			f.Release()
		}
		records += len(p.Records)
	}
	perRecord(b, records, before)
	b.ReportMetric(float64(packed)/float64(records), "bytes/record")
}

// BenchmarkFold computes the state of a log from its last snapshot, as at a start.
func BenchmarkFold(b *testing.B) {
	w := benchQueue(b)
	fillToSnapshot(b, w)
	for w.State().BytesSinceSnapshot < 3<<20 {
		appendPage(b, w, 100, recordBytes)
	}
	for b.Loop() {
		fold(b, w.Log())
	}
}
