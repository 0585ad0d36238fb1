package bench

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
)

// BenchmarkMemory compares the memory that `check` prints with what `run` takes behind a backlog, for
// so many tables of items of such a size. It reports both figures of check, the peak of the daemon,
// and each figure in parts of the peak: usual is meant for items of a few KB, most for items of
// hundreds of KB in every table.
//
// The changes of each load have 1.2 GB together, so that the daemon works for longer than the ten
// seconds for which the embedded server keeps what was written. A null server acknowledges each
// write at once and keeps none: what is written is compared by BenchmarkDaemon.
func BenchmarkMemory(b *testing.B) {
	for _, queue := range []string{"embedded", "cluster"} {
		for _, tables := range []int{1, 10, 100} {
			for _, l := range []load{
				{name: "1_KB", items: 240_000},
				{name: "10_KB", items: 60_000, size: 10_000},
				{name: "100_KB", items: 6_000, size: 100_000},
			} {
				l.tables, l.rounds = tables, 1
				b.Run(fmt.Sprintf("%s/%d_tables/%s", queue, tables, l.name), func(b *testing.B) {
					for range b.N {
						l.weigh(b, queue == "cluster")
					}
				})
			}
		}
	}
}

// weigh reports the memory that a load takes, and what check prints about it.
func (l load) weigh(b *testing.B, outside bool) {
	b.StopTimer()
	if outside {
		l.queue = fmt.Sprintf("{url: %q, replicas: 1}", serveNATS(b, b.TempDir()).ClientURL())
	}
	l.forgets = true
	r := l.run(b, true, max(64/l.tables, 1))
	defer r.close()
	b.StartTimer()
	applied(b, r.metrics, l.changes())
	b.StopTimer()
	peak := peakMemory(b, r.cmd.Process.Pid)
	stop(b, r.cmd)
	usual, most := checked(b, r.check)
	b.ReportMetric(peak, "peak_MiB")
	b.ReportMetric(usual, "usual_MiB")
	b.ReportMetric(most, "most_MiB")
	b.ReportMetric(usual/peak, "usual/peak")
	b.ReportMetric(most/peak, "most/peak")
	b.StartTimer()
}

// checked returns what `check --json` prints about memory, in MiB.
func checked(b *testing.B, cmd *exec.Cmd) (usual, most float64) {
	b.Helper()
	out, _ := cmd.Output() // its exit code is about other findings
	var report struct {
		Cost struct {
			Usual float64 `json:"memory_bytes"`
			Most  float64 `json:"memory_bytes_large_items"`
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		b.Fatal(err)
	}
	const mib = 1 << 20
	return report.Cost.Usual / mib, report.Cost.Most / mib
}
