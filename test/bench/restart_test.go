package bench

import (
	"io/fs"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkRestart starts a daemon again behind two gigabytes of log that are applied and kept,
// with the store in its own process and with an external NATS. It reports the seconds from the
// start of the process until its first write arrives at Bigtable, a null server: that of an item
// which was changed while the daemon was away. With "stopped" the daemon was ended by SIGTERM, with
// "killed" by SIGKILL: then nobody has released the log, and a claim in an external NATS waits
// until it was silent for 15 s.
func BenchmarkRestart(b *testing.B) {
	for _, x := range []struct{ name, queue string }{{"own_store", "{dir: ./data}"}, {"external_nats", ""}} {
		b.Run(x.name, func(b *testing.B) {
			for range b.N {
				load{tables: 1, items: 500, rounds: 11, size: 190_000, queue: x.queue}.restart(b)
			}
		})
	}
}

func (l load) restart(b *testing.B) {
	b.Helper()
	g := newGroup(b, l, 4)
	m := g.start(0)
	g.share(1)
	for n := range l.rounds {
		l.round(b, g.sb, g.rnd, n+1)
	}
	g.until("all changes are applied", 10*time.Minute, func() bool { return g.calls() >= l.changes() })
	<-time.After(settles) // the marks are stored
	b.ReportMetric(float64(bytesBelow(b, g.dir, g.nats.StoreDir()))/1e9, "GB_of_log")
	l.items = 1
	for _, how := range []string{"stopped", "killed"} {
		if how == "stopped" {
			stop(b, m.cmd)
		} else if err := m.cmd.Process.Kill(); err != nil {
			b.Fatal(err)
		} else {
			_ = m.cmd.Wait()
		}
		l.round(b, g.sb, g.rnd, 100)
		g.launch(m)
		g.until("the change is applied", 5*time.Minute, func() bool { return m.front.first.Load() != nil })
		b.ReportMetric(m.front.first.Load().Sub(m.begun).Seconds(), how+"_s")
		b.ReportMetric(peakMemory(b, m.cmd.Process.Pid), how+"_MiB")
		<-time.After(settles)
	}
	b.ReportMetric(0, "ns/op")
	g.stop()
}

// bytesBelow returns the size of all files below some directories.
func bytesBelow(b *testing.B, dirs ...string) (sum int64) {
	b.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err == nil {
				sum += info.Size()
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return sum
}
