// Package bench measures the whole daemon: the real binary in a process of its own, all servers in this one.
package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

const (
	items   = 20_000
	rounds  = 5 // changes of each item after the stream is on: MODIFY with old and new image
	changes = items * rounds
)

// BenchmarkDaemon passes a backlog of records of 1 KB images (old and new, 2.4 KB of JSON) through `replicator
// run`. It reports the daemon's own CPU per record, user and system, with all servers outside of its process,
// its peak memory, and records per second of wall time from its start until all are applied.
func BenchmarkDaemon(b *testing.B) {
	for _, c := range []struct {
		name string
		null bool
	}{{"emulator", false}, {"null_server", true}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				measure(b, c.null)
			}
		})
	}
}

func measure(b *testing.B, null bool) {
	b.StopTimer()
	dir := b.TempDir()
	bin := filepath.Join(dir, "replicator")
	run(b, dir, nil, "go", "build", "-o", bin, "../../cmd/replicator")
	sb, err := sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, Seed: 1, Partitions: 64})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	load(b, sb)
	admin := freeAddress(b)
	config := filepath.Join(dir, "tailrace.yaml")
	text := fmt.Sprintf("pipeline: bench\nsource: {region: us-east-1, endpoint: %q}\nbigtable: {project: local, instance: local}\n"+
		"queue: {dir: ./data}\nadmin: {listen: %q}\ntables:\n- {source: Bench, target: bench}\n", sb.Endpoint(), admin)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	env := append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "BIGTABLE_EMULATOR_HOST="+sb.Bigtable.Addr())
	run(b, dir, env, bin, "schema", "--apply", "-c", config)
	if null {
		env = append(env, "BIGTABLE_EMULATOR_HOST="+nullServer(b, sb.Bigtable.Addr()))
	}
	cmd := exec.Command(bin, "run", "-c", config)
	cmd.Env = env
	if os.Getenv("TAILRACE_BENCH_LOG") != "" {
		cmd.Stderr = os.Stderr
	}
	b.StartTimer()
	start := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	applied(b, "http://"+admin+"/metrics")
	wall := time.Since(start)
	b.StopTimer()
	peak := peakMemory(b, cmd.Process.Pid)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := time.Duration(use.Utime.Nano() + use.Stime.Nano())
	b.ReportMetric(float64(cpu.Microseconds())/changes, "cpu_µs/record")
	b.ReportMetric(changes/wall.Seconds(), "records/s")
	b.ReportMetric(peak, "MiB")
	b.ReportMetric(0, "ns/op")
	b.StartTimer()
}

func load(b *testing.B, sb *sandbox.Sandbox) {
	b.Helper()
	post(b, sb, "CreateTable", `{"TableName":"Bench","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],"BillingMode":"PAY_PER_REQUEST"}`)
	rnd := rand.New(rand.NewPCG(1, 1))
	round := func(n int) {
		for i := range items {
			if err := sb.DynamoDB.Put("Bench", item(rnd, i, n)); err != nil {
				b.Fatal(err)
			}
		}
	}
	round(0)
	post(b, sb, "UpdateTable", `{"TableName":"Bench","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	for n := range rounds {
		round(n + 1)
	}
}

// item has 15 attributes and about 1 KB of JSON.
func item(rnd *rand.Rand, i, n int) []byte {
	var s strings.Builder
	fmt.Fprintf(&s, `{"pk":{"S":"customer-%05d"},"sk":{"S":"order-%03d"},"round":{"N":"%d"}`, i/20, i%20, n)
	for a := range 8 {
		fmt.Fprintf(&s, `,"attribute%d":{"S":"%016x%016x%016x"}`, a, rnd.Uint64(), rnd.Uint64(), rnd.Uint64())
	}
	s.WriteString(`,"price":{"N":"129.95"},"tags":{"SS":["blue","cotton","sale"]},"open":{"BOOL":true},"lines":{"L":[{"M":{"sku":{"S":"a-1"},"n":{"N":"2"}}},{"M":{"sku":{"S":"b-7"},"n":{"N":"1"}}}]}}`)
	return []byte(s.String())
}

func run(b *testing.B, dir string, env []string, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	if env != nil {
		cmd.Dir, cmd.Env = dir, env
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
