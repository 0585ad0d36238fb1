package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// BenchmarkIdleShards lets the daemon watch 1,000 idle shards at the default poll interval. It
// reports the share of one core that the daemon uses, the CPU time per poll, and its memory per
// shard beyond that of a table with four shards.
func BenchmarkIdleShards(b *testing.B) {
	for range b.N {
		_, _, small := idle(b, 4)
		cpu, polls, large := idle(b, 1000)
		b.ReportMetric(100*cpu.Seconds()/idleTime.Seconds(), "%core")
		b.ReportMetric(float64(cpu.Microseconds())/polls, "cpu_µs/poll")
		b.ReportMetric((large-small)*1024/996, "KiB/shard")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkIdleTables lets the daemon watch 100 tables with one shard each, after it has carried
// some changes of each. It reports the share of one core that the daemon uses, and its peak memory.
func BenchmarkIdleTables(b *testing.B) {
	for range b.N {
		l := load{tables: 100, items: 1000, rounds: 1}
		r := l.run(b, false, 1)
		applied(b, r.metrics, l.changes())
		<-time.After(idleTime) // the first empty pages of a shard come quickly one after the other
		before := processorTime(b, r.cmd.Process.Pid)
		<-time.After(idleTime)
		cpu := processorTime(b, r.cmd.Process.Pid) - before
		b.ReportMetric(100*cpu.Seconds()/idleTime.Seconds(), "%core")
		b.ReportMetric(peakMemory(b, r.cmd.Process.Pid), "MiB")
		b.ReportMetric(0, "ns/op")
		stop(b, r.cmd)
		equal(b, l, r.sb, r.front)
		r.close()
	}
}

// idleTime is how long the idle daemon is watched.
const idleTime = 10 * time.Second

func idle(b *testing.B, shards int) (cpu time.Duration, polls, mib float64) {
	b.Helper()
	d := startDaemon(b, sandbox.Options{NoLedger: true, NoNATS: true, Partitions: shards}, "")
	defer d.stop()
	// The first empty pages of a shard come quickly one after the other: it is not idle yet.
	const pages = `tailrace_source_pages_total{kind="empty"`
	d.waitFor(pages, func(v float64) bool { return v >= float64(12*shards) })
	first, _ := sample(d.metrics, pages)
	before := processorTime(b, d.cmd.Process.Pid)
	<-time.After(idleTime)
	cpu = processorTime(b, d.cmd.Process.Pid) - before
	last, _ := sample(d.metrics, pages)
	return cpu, last - first, peakMemory(b, d.cmd.Process.Pid)
}

// BenchmarkLag writes single items into an idle table and waits until a reader of Bigtable sees
// each. It reports the median and the worst of the lags in milliseconds; the poll interval is the
// default of a second.
func BenchmarkLag(b *testing.B) {
	for range b.N {
		d := startDaemon(b, sandbox.Options{NoLedger: true, NoNATS: true}, "")
		d.waitFor(`tailrace_applied_lag_seconds{table="Bench"`, func(v float64) bool { return v > 0 })
		table := d.open("bench")
		var lags []float64
		for i := range 15 {
			<-time.After(time.Duration(1500+137*i) * time.Millisecond) // idle again, at no fixed phase of the poll
			start := time.Now()
			item := fmt.Appendf(nil, `{"pk":{"S":"lag"},"sk":{"S":"%d"},"v":{"N":"1"}}`, i)
			if err := d.sb.DynamoDB.Put("Bench", item); err != nil {
				b.Fatal(err)
			}
			for key := fmt.Sprintf("lag#%d", i); ; <-time.After(2 * time.Millisecond) {
				row, err := table.ReadRow(b.Context(), key)
				if err != nil {
					b.Fatal(err)
				}
				if len(row) > 0 {
					break
				}
			}
			lags = append(lags, float64(time.Since(start).Microseconds())/1000)
		}
		d.stop()
		slices.Sort(lags)
		b.ReportMetric(lags[len(lags)/2], "ms_median")
		b.ReportMetric(lags[len(lags)-1], "ms_worst")
		b.ReportMetric(0, "ns/op")
	}
}

// daemon is a running replicator beside a sandbox in this process.
type daemon struct {
	b       *testing.B
	sb      *sandbox.Sandbox
	cmd     *exec.Cmd
	metrics string
}

func startDaemon(b *testing.B, o sandbox.Options, more string) *daemon {
	b.Helper()
	dir := b.TempDir()
	bin := binary(b, dir)
	sb, err := sandbox.Start(o)
	if err != nil {
		b.Fatal(err)
	}
	post(b, sb, "CreateTable", `{"TableName":"Bench",
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
		"BillingMode":"PAY_PER_REQUEST",
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	admin := freeAddress(b)
	config := filepath.Join(dir, "tailrace.yaml")
	text := fmt.Sprintf("pipeline: bench\nsource: {region: us-east-1, endpoint: %q}\n"+
		"bigtable: {project: local, instance: local}\nqueue: {dir: ./data}\nadmin: {listen: %q}\n"+
		"%stables:\n- {source: Bench, target: bench}\n", sb.Endpoint(), admin, more)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	env := environment(sb.Bigtable.Addr())
	run(b, dir, env, bin, "schema", "--apply", "-c", config)
	cmd := start(b, bin, env, "run", "-c", config)
	return &daemon{b: b, sb: sb, cmd: cmd, metrics: "http://" + admin + "/metrics"}
}

func (d *daemon) stop() {
	d.b.Helper()
	stop(d.b, d.cmd)
	if err := d.sb.Close(); err != nil {
		d.b.Fatal(err)
	}
}

// waitFor returns once the metric is there and as wanted.
func (d *daemon) waitFor(metric string, good func(float64) bool) {
	d.b.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		if v, ok := sample(d.metrics, metric); ok && good(v) {
			return
		}
		select {
		case <-deadline:
			d.b.Fatalf("waited in vain for %s", metric)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (d *daemon) open(target string) *bigtable.Table {
	d.b.Helper()
	conn, err := grpc.NewClient(d.sb.Bigtable.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.b.Fatal(err)
	}
	c, err := bigtable.NewClientWithConfig(context.Background(), "local", "local",
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		d.b.Fatal(err)
	}
	d.b.Cleanup(func() { _ = conn.Close() })
	return c.Open(target)
}

// processorTime is what a process has used so far, user and system.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("needs /proc")
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // clock ticks of 1/100 s
}
