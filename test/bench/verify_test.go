package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// BenchmarkVerify compares a table with its target, equal sides, through both servers: first by
// `replicator verify --for-cutover`, which reads all items strongly, twice, then by `replicator
// cutover`. It reports items per second of each comparison in wall time, the CPU of its process and
// of both servers per item, its peak memory, and the seconds from the end of the quiet period to
// the certificate. The emulator needs more for a row than the comparison, so the second comparison
// takes rows from a server that only sends the replies of the first again.
func BenchmarkVerify(b *testing.B) {
	for _, l := range []copyLoad{
		{name: "200_thousand", items: 200_000, size: 250},
		{name: "million", items: 1_000_000, size: 250},
	} {
		b.Run(l.name, func(b *testing.B) {
			for range b.N {
				l.verify(b)
			}
		})
	}
}

// replicated is a daemon that has copied a table, and its servers.
type replicated struct {
	sb               *sandbox.Sandbox
	dir, bin, config string
	env              []string
	cmd              *exec.Cmd
}

// replicate makes the table, and returns when all of it is in Bigtable.
func (l copyLoad) replicate(b *testing.B) *replicated {
	b.Helper()
	r := &replicated{dir: b.TempDir()}
	r.bin = binary(b, r.dir)
	var err error
	if r.sb, err = sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, NoS3: true, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	l.fill(b, r.sb)
	admin := freeAddress(b)
	table := load{tables: 1, items: l.items, options: ", backfill: {from: scan, read_units: 100000}",
		settings: "scratch: ./scratch\n"}
	r.config = table.configure(b, r.dir, r.sb.Endpoint(), admin)
	r.env = environment(r.sb.Bigtable.Addr())
	run(b, r.dir, r.env, r.bin, "schema", "--apply", "-c", r.config)
	r.cmd = start(b, r.bin, r.env, "run", "-c", r.config)
	d := &daemon{b: b, sb: r.sb, cmd: r.cmd, metrics: "http://" + admin + "/metrics"}
	d.waitFor("tailrace_copy_items_total{", func(v float64) bool { return v >= float64(l.items) })
	run(b, r.dir, r.env, r.bin, "status", "--wait", "applied=now", "-c", r.config)
	return r
}

func (l copyLoad) verify(b *testing.B) {
	b.StopTimer()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // of the servers, which hold all items and rows in memory
	r := l.replicate(b)
	defer func() { _ = r.sb.Close() }()
	sb, dir, bin, config, env, cmd := r.sb, r.dir, r.bin, r.config, r.env, r.cmd

	// The first comparison reads from the emulator, the second one from a server that has the
	// replies of the first.
	front := serveFront(b, sb.Bigtable.Addr(), false, network{})
	front.keepReads = true
	b.StartTimer()
	for _, server := range []string{"emulator", "replies"} {
		l.compared(b, server, dir, bin, config, environment(front.address))
	}
	_, certified := cutOver(b, dir, env, bin, config, func() {})
	b.StopTimer()
	stop(b, cmd)
	b.ReportMetric(certified.Seconds(), "s_to_certificate")
	b.ReportMetric(0, "ns/op")
}

// compared compares both sides, which are equal, and reports what it takes.
func (l copyLoad) compared(b *testing.B, server, dir, bin, config string, env []string) {
	b.Helper()
	begin, before := time.Now(), processorTime(b, os.Getpid())
	out, cpu, peak := command(b, dir, env, bin, "verify", "--for-cutover", "--json", "-c", config)
	wall, servers := time.Since(begin), processorTime(b, os.Getpid())-before
	var result struct{ Verdict string }
	if err := json.Unmarshal(out, &result); err != nil || result.Verdict != "equal" {
		b.Fatalf("verify: %v: %s", err, out)
	}
	items := float64(l.items)
	b.ReportMetric(items/wall.Seconds(), server+"_items/s")
	b.ReportMetric(float64(cpu.Microseconds())/items, server+"_cpu_µs/item")
	b.ReportMetric(float64(servers.Microseconds())/items, server+"_servers_µs/item")
	b.ReportMetric(peak, server+"_MiB")
}

// command runs a command and returns what it printed on stdout, its CPU, and its peak memory in
// MiB.
func command(b *testing.B, dir string, env []string, bin string, args ...string) (
	stdout []byte, cpu time.Duration, peak float64,
) {
	b.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &out, &errs
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				b.Fatalf("%v: %v\n%s%s", args, err, &out, &errs)
			}
			use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			return out.Bytes(), time.Duration(use.Utime.Nano() + use.Stime.Nano()), peak
		case <-time.After(50 * time.Millisecond): // the peak of a process that has ended is that of its parent, too
			peak = max(peak, peakMemory(b, cmd.Process.Pid))
		}
	}
}
