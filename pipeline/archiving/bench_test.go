package archiving

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	"github.com/tailrace-cdc/replicator/sandbox/nats"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// BenchmarkArchive stores events of 1 KB in the archive's stream and archives them in Parquet in a
// directory. It reports, for an event, the CPU of both steps, the server's and fsync included;
// events per second of each; and the memory of this process at its highest: the server is another
// one. With 24 hours, 24 shards are read at once, each in another hour, as after a day's outage; in
// turn, the bucket was away for a day.
func BenchmarkArchive(b *testing.B) {
	const events = 400_000
	for _, load := range []struct {
		name string
		hour func(n int) int
	}{
		{"1_hour", func(int) int { return 0 }},
		{"24_hours", func(n int) int { return n % 24 }},
		{"24_hours_in_turn", func(n int) int { return n * 24 / events }},
	} {
		b.Run(load.name, func(b *testing.B) {
			for range b.N {
				archiveEvents(b, events, load.hour)
			}
		})
	}
}

// With this variable the test binary is a NATS server with its store in that directory, until its
// input ends.
const childServer = "TAILRACE_ARCHIVING_BENCH_SERVER"

func serveChild(dir string) error {
	s, err := nats.Open(nats.Options{Addr: "127.0.0.1:0", Dir: dir})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, s.URL())
	if err == nil {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	return errors.Join(err, s.Close())
}

// startServer starts a NATS server in a process of its own, and returns its address and the
// process's number.
func startServer(b *testing.B) (url string, pid int) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childServer+"="+b.TempDir())
	cmd.Stderr = os.Stderr
	stop, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(stop.Close(), cmd.Wait()); err != nil {
			b.Error(err)
		}
	})
	url, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(url), cmd.Process.Pid
}

func archiveEvents(b *testing.B, events int, hourOf func(n int) int) {
	url, pid := startServer(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	q, err := queue.Open(ctx, queue.Options{
		Pipeline: "bench", URL: url, ArchiveMaxBytes: 4 << 30, MaxBytes: 1 << 30,
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
	began, cpu := time.Now(), cpuTime(pid)
	for n := range events {
		batch = append(batch, ledger.Record{Event: benchEvent(n, begin+layout.Hour(hourOf(n)))})
		if len(batch) == cap(batch) || n == events-1 {
			if _, err := a.Store(ctx, batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	b.ReportMetric(float64(cpuTime(pid)-cpu)/float64(events)/1e3, "µs-cpu-store/event")
	b.ReportMetric(float64(events)/time.Since(began).Seconds(), "stored/s")
	began, cpu = time.Now(), cpuTime(pid)
	a.Passed(change.Millis((begin + layout.Hour(hourOf(events-1)) + 2).Time().UnixMilli())) // the hours are over
	for a.Status().Closed == "" {
		if err := failure.Pause(ctx, 50*time.Millisecond); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(pid)-cpu)/float64(events)/1e3, "µs-cpu-objects/event")
	b.ReportMetric(float64(events)/time.Since(began).Seconds(), "archived/s")
	b.ReportMetric(highest(b), "MiB")
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

// cpuTime returns the CPU time of this process and of another one, in nanoseconds.
func cpuTime(pid int) int64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // only on Linux
	var user, system int64
	if fields := strings.Fields(string(stat)); len(fields) > 14 {
		user, _ = strconv.ParseInt(fields[13], 10, 64)
		system, _ = strconv.ParseInt(fields[14], 10, 64)
	}
	return r.Utime.Nano() + r.Stime.Nano() + (user+system)*int64(10*time.Millisecond)
}

// highest returns the most memory that this process had, in MiB.
func highest(b *testing.B) float64 {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Maxrss) / (1 << 10) // Linux counts in KiB
}
