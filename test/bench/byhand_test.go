package bench

import (
	"bufio"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// byHand is how a program written by hand carries a load into the null server.
type byHand struct {
	name    string
	copies  bool // the table, not its stream
	bulk    bool // calls of up to 500 rows, without a guard against older values
	items   int
	network network
}

// BenchmarkByHand measures what one would write with the SDKs alone, as BenchmarkDaemon and
// BenchmarkCopy measure the daemon. It has neither a log nor a checkpoint.
func BenchmarkByHand(b *testing.B) {
	slow := network{latency: 20 * time.Millisecond}
	for _, h := range []byHand{
		{name: "stream/guarded/0ms", items: 40_000},
		{name: "stream/guarded/20ms", items: 40_000, network: slow},
		{name: "stream/bulk/0ms", items: 80_000, bulk: true},
		{name: "stream/bulk/20ms", items: 80_000, bulk: true, network: slow},
		{name: "copy/guarded/0ms", items: 100_000, copies: true},
		{name: "copy/guarded/20ms", items: 100_000, copies: true, network: slow},
		{name: "copy/bulk/0ms", items: 200_000, copies: true, bulk: true},
		{name: "copy/bulk/20ms", items: 200_000, copies: true, bulk: true, network: slow},
	} {
		b.Run(h.name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				f := h.measure(b)
				b.ReportMetric(f.cpu, "cpu_µs/record")
				b.ReportMetric(f.rate, "records/s")
				b.ReportMetric(f.peak, "MiB")
				b.ReportMetric(0, "ns/op")
				b.StartTimer()
			}
		})
	}
}

func (h byHand) measure(b *testing.B) figures {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "byhand")
	run(b, "", nil, "go", "build", "-o", bin, "./byhand")
	sb, err := sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, NoS3: true, Seed: 1, Partitions: 64})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	if h.copies {
		copyLoad{items: h.items}.fill(b, sb)
	} else {
		load{tables: 1, items: h.items, rounds: 1}.write(b, sb)
	}
	front := serveFront(b, sb.Bigtable.Addr(), true, h.network)
	front.forgets = true
	cmd := exec.Command(bin, "-endpoint", sb.Endpoint(), "-bigtable", front.address, "-source", sourceName(0),
		"-target", targetName(0), "-expect", strconv.Itoa(h.items),
		"-copy="+strconv.FormatBool(h.copies), "-bulk="+strconv.FormatBool(h.bulk))
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	begin := time.Now()
	if err := cmp.Or(err, err2, cmd.Start()); err != nil {
		b.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		b.Fatal(err, cmd.Wait())
	}
	wall, peak := time.Since(begin), peakMemory(b, cmd.Process.Pid)
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	if n := front.calls.Load() + front.bulked.Load(); n != int64(h.items) {
		b.Fatalf("%d rows written, of %d", n, h.items)
	}
	use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := time.Duration(use.Utime.Nano() + use.Stime.Nano())
	return figures{float64(cpu.Microseconds()) / float64(h.items), float64(h.items) / wall.Seconds(), peak}
}
