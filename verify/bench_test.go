package verify

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// BenchmarkCompare compares equal sides in memory: decoding, projection, sort and merge, without any server.
func BenchmarkCompare(b *testing.B) {
	p := compile(b, "")
	items := make([][]byte, 4096)
	rows := make([]*bigtable.Row, len(items))
	var d change.Decoder
	for i := range items {
		items[i] = fmt.Appendf(nil, `{"pk":{"S":"user"},"sk":{"S":"%08d"},"name":{"S":"%0100d"},"price":{"N":"%d"},"stock":{`+
			`"N":"7"}}`, i, i, i)
		img, err := d.Image(items[i])
		if err != nil {
			b.Fatal(err)
		}
		projected, err := p.Project(img)
		if err != nil {
			b.Fatal(err)
		}
		rows[i] = &bigtable.Row{Key: projected[0].Key}
		for _, c := range projected[0].Cells {
			rows[i].Cells = append(rows[i].Cells,
				bigtable.Cell{Family: c.Family, Qualifier: c.Qualifier, Value: c.Value, Time: time.UnixMilli(1)})
		}
	}
	read := func(_ context.Context, f func(change.Image) error) error {
		for _, item := range items {
			d.Reset()
			img, err := d.Image(item)
			if err != nil {
				return err
			}
			if err := f(img); err != nil {
				return err
			}
		}
		return nil
	}
	stored := func(_ context.Context, f func(*bigtable.Row) error) error {
		for _, row := range rows {
			if err := f(row); err != nil {
				return err
			}
		}
		return nil
	}
	for _, memory := range []int{1 << 30, 1 << 18} {
		b.Run(fmt.Sprintf("memory=%d", memory), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				res, err := Compare(b.Context(), Options{Memory: memory, Dir: b.TempDir()},
					[]Source{{Program: p, Schema: schema, Items: read}}, stored)
				if err != nil || !res.Equal() {
					b.Fatalf("%+v, %v", res, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(items)), "µs/item")
		})
	}
}

// filledEngine has n items of about 400 bytes on both sides.
func filledEngine(b *testing.B, n int) *engine {
	e := newEngine(b, "")
	e.parts, e.perPage = 8, 500
	text := fmt.Sprintf("%0300d", 7)
	for i := range n {
		e.put(fmt.Sprintf("user#%04d", i%1000), fmt.Sprintf("%08d", i),
			fmt.Sprintf(`"name":{"S":%q},"price":{"N":"%d"},"stock":{"N":"7"}`, text, i))
	}
	e.fillPages()
	return e
}

// BenchmarkFull compares equal sides with the emulator in the same process: reading, projection, sort, merge.
func BenchmarkFull(b *testing.B) {
	e := filledEngine(b, 20_000)
	b.ResetTimer()
	for range b.N {
		f := e.full(e.options())
		if c := f.Counts; c.Equal != int64(len(e.items)) || c.Candidates > 0 {
			b.Fatalf("%+v", c)
		}
		if err := f.Remove(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(e.items))/b.Elapsed().Seconds(), "items/s")
}

// BenchmarkSettle settles 1,000 candidates that differ: three readings of the items, two of the rows. The two proofs,
// of 5 to 10 seconds each, are not in it.
func BenchmarkSettle(b *testing.B) {
	e := filledEngine(b, 1000)
	var all []Candidate
	for key := range e.items {
		all = append(all, Candidate{Key: key})
		e.items[key] = e.items[key][:len(e.items[key])-1] + `,"new":{"S":"x"}}`
	}
	s := e.settler()
	b.ResetTimer()
	for range b.N {
		verdicts, err := s.Settle(b.Context(), all)
		if err != nil || len(verdicts) != len(all) || verdicts[0].Status != Different {
			b.Fatal(err)
		}
	}
}
