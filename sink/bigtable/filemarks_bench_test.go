package bigtable

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/delegation"
)

// BenchmarkLoadFileMarks reads the marks of 50,000 files, as the owner of a table does every 15
// seconds where each row of marks lacks one. It reports the CPU of the reader, and the share of a
// core that it takes. The marks are in Google's emulator, a process of its own.
func BenchmarkLoadFileMarks(b *testing.B) {
	const files, every = 50_000, 15 * time.Second
	if _, err := os.Stat(cbtemulator); err != nil {
		b.Skip("Google's emulator is not installed")
	}
	c := open(b, startEmulator(b))
	createTables(b, c)
	o := orderOf("o.1", 1)
	o.Export.Files = files
	var writers errgroup.Group
	writers.SetLimit(64)
	for file := range files {
		writers.Go(func() error {
			return c.StoreFileMark(b.Context(), o, file, delegation.FileMark{Items: 100_000, Rows: 100_000, Bytes: 1 << 26}, nil)
		})
	}
	if err := writers.Wait(); err != nil {
		b.Fatal(err)
	}
	cpu := func() time.Duration {
		var use syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
			b.Fatal(err)
		}
		return time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	b.ResetTimer()
	began := cpu()
	for range b.N {
		n := 0
		for row := range delegation.Rows(files) { // all files but the last of each row are taken over
			last := func(file int) bool { return file%delegation.FilesPerRow == delegation.FilesPerRow-1 }
			err := c.LoadFileMarks(b.Context(), o, row, last, func(int, *delegation.FileMark) error { n++; return nil })
			if err != nil {
				b.Fatal(err)
			}
		}
		if n != delegation.Rows(files) {
			b.Fatalf("%d marks", n)
		}
	}
	took := (cpu() - began) / time.Duration(b.N)
	b.ReportMetric(float64(took.Milliseconds()), "cpu_ms/look")
	b.ReportMetric(100*took.Seconds()/every.Seconds(), "%_of_a_core")
}
