package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// generated is a table of n items and its target, equal, made as they are read: no server, and no
// memory for them.
type generated struct {
	b       *testing.B
	n       int
	parts   int
	program *transform.Program
	random  bool // keys are random: neighbours have little in common
	peak    atomic.Uint64
	scratch atomic.Int64
	dir     string
}

const generatedPage = 1000

// key returns the key of the item that is i-th in the order of rows.
func (g *generated) key(i int) (pk, sk string) {
	if g.random {
		// The leading bits rise with i, so that the target can be made in its order; the others
		// look random.
		lead, rest := uint64(i)<<40/uint64(g.n), uint64(i)*0x9e3779b97f4a7c15
		return fmt.Sprintf("%010x-%016x-%06x", lead, rest, rest>>40^0xabc), "0"
	}
	return fmt.Sprintf("user#%07d", i/100), fmt.Sprintf("%02d", i%100)
}

func (g *generated) page(_ context.Context, part int, after string) (*source.ItemPage, error) {
	from, _ := strconv.Atoi(after) // "" is the first page
	size := (g.n + g.parts - 1) / g.parts
	p := &source.ItemPage{Requested: 1000, Answered: 1000}
	text := "a description of about a hundred bytes, as it may stand in an item of a shop, for which nobody looks"
	for at := from; at < min(from+generatedPage, size); at++ {
		// A part holds items of all rows: a scan reads them in the order of a hash.
		i := int((uint64(at)*7919)%uint64(size))*g.parts + part
		if i >= g.n {
			continue
		}
		pk, sk := g.key(i)
		p.Items = append(p.Items, fmt.Appendf(nil, `{"pk":{"S":%q},"sk":{"S":%q},"name":{"S":%q},"price":{"N":"%d"}}`,
			pk, sk, text, i))
	}
	if from+generatedPage >= size {
		p.Done = true
	} else {
		p.After = strconv.Itoa(from + generatedPage)
	}
	return p, nil
}

func (g *generated) Scan(_ context.Context, f func(*Row) error) error {
	g.scratch.Store(folderSize(g.b, g.dir))
	var (
		row   Row
		dec   change.Decoder
		write transform.Write
		text  []byte
	)
	schema := g.program.Table().Schema
	for i := range g.n {
		dec.Reset()
		pk, sk := g.key(i)
		text = fmt.Appendf(text[:0], `{"pk":{"S":%q},"sk":{"S":%q},"name":{"S":%q},"price":{"N":"%d"}}`, pk, sk,
			"a description of about a hundred bytes, as it may stand in an item of a shop, for which nobody looks", i)
		img, err := dec.Image(text)
		if err != nil {
			return err
		}
		key, err := schema.Canonical(nil, img)
		if err != nil {
			return err
		}
		c := change.Change{Op: change.Insert, Version: 1, Keys: key, New: text}
		if err := g.program.Change(&dec, &c, &write); err != nil {
			return err
		}
		row.Key, row.Cells = write.Rows[0].Key, row.Cells[:0]
		for _, x := range write.Rows[0].Cells {
			row.Cells = append(row.Cells,
				bigtable.Cell{Family: x.Family, Qualifier: x.Qualifier, Value: x.Value, Time: time.UnixMilli(1)})
		}
		of := g.program.Table()
		row.Live = append(row.Live[:0], bigtable.Cell{Qualifier: []byte("i"), Time: time.UnixMilli(1),
			Value: guard.Append(nil, of.Pipeline, of.Source, key)})
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

func (g *generated) Lookup(context.Context, []string, func(*Row) error) error { return nil }

func (g *generated) GuardOf(_, _, _ []byte) (bigtable.Guard, error) { return bigtable.Guard{}, nil }

func folderSize(b *testing.B, dir string) (sum int64) {
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}

// measure notes the largest heap.
func (g *generated) measure(Counts) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for old := g.peak.Load(); m.HeapInuse > old && !g.peak.CompareAndSwap(old, m.HeapInuse); old = g.peak.Load() {
	}
}

func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFullGenerated compares equal sides that are made as they are read. FULL_ITEMS sets how
// many items: the goal is measured with 10,000,000. The making is in the times, about half of them.
func BenchmarkFullGenerated(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("FULL_ITEMS"))
	if err != nil {
		n = 200_000
	}
	for _, random := range []bool{false, true} {
		b.Run(fmt.Sprintf("random=%t", random), func(b *testing.B) {
			g := &generated{b: b, n: n, parts: 16, program: compile(b, ""), random: random}
			cpu := processTime(b)
			for range b.N {
				g.dir = filepath.Join(b.TempDir(), "scratch")
				o := FullOptions{
					Dir: g.dir, Identity: "b", Now: func() change.Millis { return 1_000_000 }, Lead: 1000, Progress: g.measure,
				}
				found, err := Full(b.Context(), o, []Table{{Program: g.program, Parts: g.parts, Page: g.page}}, g)
				if err != nil {
					b.Fatal(err)
				}
				if c := found.Counts; c.Equal != int64(n) || c.Candidates > 0 {
					b.Fatalf("%+v", c)
				}
				if err := found.Remove(); err != nil {
					b.Fatal(err)
				}
			}
			items := float64(b.N) * float64(n)
			b.ReportMetric(items/b.Elapsed().Seconds(), "items/s")
			b.ReportMetric(float64((processTime(b)-cpu).Nanoseconds())/1000/items, "µs-cpu/item")
			b.ReportMetric(float64(g.scratch.Load())/float64(n), "scratch-B/item")
			b.ReportMetric(float64(g.peak.Load())/(1<<20), "heap-MiB")
		})
	}
}
