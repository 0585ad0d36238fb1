// Package bench measures the whole daemon: the real binary in a process of its own, all servers in
// this one.
package bench

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// BenchmarkDaemon passes a backlog of changes (MODIFY, with old and new image) through `replicator
// run`. It reports the daemon's own CPU per record, user and system, with all servers outside of
// its process; the calls of Bigtable per record; its peak memory; and records per second of wall
// time from its start until all are applied. Afterwards every cell is read back and compared with
// what the source's items shall be there.
//
// Loads of distinct items make a call for each record. Hot items change several times in short
// order and are coalesced: fewer calls, so a lower price of a record. The price of many tables is
// for the same records as of one.
func BenchmarkDaemon(b *testing.B) {
	for _, l := range []load{
		{name: "distinct", tables: 1, items: 40_000, rounds: 1},
		{name: "tls", tables: 1, items: 80_000, rounds: 1, network: network{tls: true}},
		{name: "10ms", tables: 1, items: 80_000, rounds: 1, network: network{latency: 10 * time.Millisecond}},
		{name: "20ms", tables: 1, items: 80_000, rounds: 1, network: network{latency: 20 * time.Millisecond}},
		{name: "jitter", tables: 1, items: 80_000, rounds: 1, network: network{latency: 10 * time.Millisecond, jitter: true}},
		{name: "refusing", tables: 1, items: 80_000, rounds: 1, network: network{latency: 10 * time.Millisecond, rate: 8000}},
		{name: "hot", tables: 1, items: 8_000, rounds: 5},
		{name: "10_tables", tables: 10, items: 40_000, rounds: 1},
		{name: "50_tables", tables: 50, items: 40_000, rounds: 1},
		{name: "100_tables", tables: 100, items: 40_000, rounds: 1},
		{name: "class_K", tables: 1, items: 40_000, rounds: 1, mapping: classK},
		{name: "class_D", tables: 1, items: 40_000, rounds: 1, mapping: classD},
		{name: "100_KB", tables: 1, items: 1_500, rounds: 1, size: 100_000},
		{name: "100_KB_backlog", tables: 1, items: 6_000, rounds: 1, size: 100_000},
		{name: "100_KB_10_tables", tables: 10, items: 1_500, rounds: 1, size: 100_000},
	} {
		for _, server := range []string{"null_server", "emulator"} {
			if server == "emulator" && l.network != (network{}) {
				continue
			}
			b.Run(l.name+"/"+server, func(b *testing.B) {
				for range b.N {
					measure(b, l, server == "null_server")
				}
			})
		}
	}
}

// measure reports what one run has taken.
func measure(b *testing.B, l load, null bool) {
	b.StopTimer()
	f, front := l.measure(b, null)
	records := float64(l.changes())
	b.ReportMetric(f.cpu, "cpu_µs/record")
	b.ReportMetric(float64(front.calls.Load())/records, "calls/record")
	b.ReportMetric(f.rate, "records/s")
	if l.network.rate > 0 {
		b.ReportMetric(float64(front.refused.Load())/records, "refused/record")
	}
	b.ReportMetric(f.peak, "MiB")
	b.ReportMetric(0, "ns/op")
	b.StartTimer()
}

// figures are what one run has taken.
type figures struct {
	cpu  float64 // µs a record or item, user and system
	rate float64 // records or items a second
	peak float64 // MiB
}

func (l load) measure(b *testing.B, null bool) (figures, *front) {
	b.Helper()
	r := l.run(b, null, max(64/l.tables, 1))
	defer r.close()
	begin := time.Now()
	applied(b, r.metrics, l.changes())
	// Behind an append whose outcome was unknown, changes are applied again, and counted again.
	if int(r.front.calls.Load()) > l.changes() {
		if out, err := r.settled.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	wall := time.Since(begin)
	peak := peakMemory(b, r.cmd.Process.Pid)
	cpu := stop(b, r.cmd)
	equal(b, l, r.sb, r.front)
	records := float64(l.changes())
	return figures{float64(cpu.Microseconds()) / records, records / wall.Seconds(), peak}, r.front
}

// loaded is a daemon that has just been started on a load.
type loaded struct {
	sb      *sandbox.Sandbox
	front   *front
	cmd     *exec.Cmd
	metrics string
	check   *exec.Cmd // of its configuration, not yet started
	settled *exec.Cmd // waits until all is applied, not yet started
}

// run writes the load into tables of so many shards, and starts a daemon.
func (l load) run(b *testing.B, null bool, shards int) *loaded {
	b.Helper()
	l.options = ", backfill: none"
	dir := b.TempDir()
	bin := binary(b, dir)
	sb, err := sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, Seed: 1, Partitions: shards})
	if err != nil {
		b.Fatal(err)
	}
	l.write(b, sb)
	admin := freeAddress(b)
	endpoint, listen := sb.Endpoint(), func(in net.Listener) net.Listener { return in }
	var secret *encrypted
	if l.network.tls {
		secret = encrypt(b, endpoint)
		endpoint, listen = secret.dynamodb, secret.serve
	}
	front := serveFrontAt(b, sb.Bigtable.Addr(), null, l.network, listen)
	front.forgets = l.forgets
	config := l.configure(b, dir, endpoint, admin)
	env := environment(front.address)
	if secret != nil {
		env = secret.env
	}
	run(b, dir, env, bin, "schema", "--apply", "-c", config)
	cmd := start(b, bin, env, "run", "-c", config)
	check := exec.Command(bin, "check", "--offline", "--json", "-c", config)
	settled := exec.Command(bin, "status", "--wait", "applied=now", "-c", config)
	settled.Env = env
	return &loaded{sb: sb, front: front, cmd: cmd, metrics: "http://" + admin + "/metrics", check: check, settled: settled}
}

func (r *loaded) close() { _ = r.sb.Close() }

// binary builds the daemon, or takes the one that is to be compared with another.
func binary(b *testing.B, dir string) string {
	b.Helper()
	if bin := os.Getenv("TAILRACE_BENCH_BINARY"); bin != "" {
		return bin
	}
	bin := filepath.Join(dir, "replicator")
	run(b, dir, nil, "go", "build", "-o", bin, "../../cmd/replicator")
	return bin
}

func environment(bigtable string) []string {
	return append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "BIGTABLE_EMULATOR_HOST="+bigtable)
}

// configure writes the configuration and returns its path.
func (l load) configure(b *testing.B, dir, endpoint, admin string) string {
	b.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "pipeline: bench\nsource: {region: us-east-1, endpoint: %q, idle_poll: %s}\n"+
		"bigtable: {project: local, instance: local%s}\n"+
		"queue: %s\nadmin: {listen: %q}\n%stables:\n", endpoint, cmp.Or(l.poll, "1s"), l.bigtable,
		cmp.Or(l.queue, "{dir: ./data}"), admin, l.settings)
	for i := range l.tables {
		fmt.Fprintf(&text, "- {source: %s, target: %s, keys: [pk:S, sk:S]%s", sourceName(i), targetName(i), l.options)
		if l.mapping != "" {
			text.WriteString(", mapping: mapping.yaml")
		}
		text.WriteString("}\n")
	}
	path := filepath.Join(dir, "tailrace.yaml")
	for file, text := range map[string]string{path: text.String(), filepath.Join(dir, "mapping.yaml"): l.mapping} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return path
}

func start(b *testing.B, bin string, env []string, args ...string) *exec.Cmd {
	b.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = env
	if os.Getenv("TAILRACE_BENCH_LOG") != "" {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill() }) // of a benchmark that has failed
	return cmd
}

// stop ends the daemon in good order and returns the CPU that it took.
func stop(b *testing.B, cmd *exec.Cmd) time.Duration {
	b.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
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
