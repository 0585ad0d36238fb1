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
