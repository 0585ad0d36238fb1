package object

import (
	"bytes"
	"fmt"
	"iter"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/transform"
)

var benchColumns = []Column{
	{Name: "city", Path: []string{"m", "city"}, Type: String}, {Name: "n", Path: []string{"n"}, Type: Int64},
	{Name: "score", Path: []string{"score"}, Type: "decimal(38,10)"},
}

func benched(b *testing.B, f func(b *testing.B, o Options)) {
	for _, o := range []Options{
		{Format: Parquet}, {Format: Parquet, Columns: benchColumns}, {Format: JSONLines},
	} {
		b.Run(fmt.Sprintf("%s/%d", o.Format, len(o.Columns)), func(b *testing.B) { f(b, o) })
	}
}

// endless returns n events made of 5000 different ones, and a footer that fits.
func endless(n int) (*Footer, iter.Seq2[*transform.Event, error]) {
	events := several(5000)
	f := footer(events[:1])
	f.Coverage = coverage.Set{coverage.Key(label, shard): {{From: "0", To: "99999999999999999999"}}}
	return f, func(yield func(*transform.Event, error) bool) {
		for i := range n {
			if !yield(events[i%len(events)], nil) {
				return
			}
		}
	}
}

// BenchmarkWrite: an operation is an event of 1 KB.
func BenchmarkWrite(b *testing.B) {
	benched(b, func(b *testing.B, o Options) {
		w := &counter{}
		f, events := endless(b.N)
		b.ReportAllocs()
		b.ResetTimer()
		if err := Write(w, o, f, events); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(w.n)/float64(b.N), "bytes/event")
	})
}

type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

const benchEvents = 100_000

func benchObject(b *testing.B, o Options) *bytes.Reader {
	var out bytes.Buffer
	f, events := endless(benchEvents)
	if err := Write(&out, o, f, events); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	return bytes.NewReader(out.Bytes())
}

// perEvent iterates objects of benchEvents events until b.N events are through.
func perEvent(b *testing.B, once func()) {
	for n := 0; n < b.N; n += benchEvents {
		once()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64((b.N+benchEvents-1)/benchEvents*benchEvents), "ns/event")
}

func BenchmarkRead(b *testing.B) {
	benched(b, func(b *testing.B, o Options) {
		r := benchObject(b, o)
		perEvent(b, func() {
			for _, err := range Read(r, r.Size()) {
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

func BenchmarkVerify(b *testing.B) {
	benched(b, func(b *testing.B, o Options) {
		r := benchObject(b, o)
		perEvent(b, func() {
			_, all, err := scan(r, r.Size(), false)
			if err != nil {
				b.Fatal(err)
			}
			v := newVerifier(footer(nil))
			v.foot.Coverage = coverage.Set{coverage.Key(label, shard): {{From: "0", To: "99999999999999999999"}}}
			for row, err := range all {
				if err != nil {
					b.Fatal(err)
				}
				v.add(row)
			}
		})
	})
}
