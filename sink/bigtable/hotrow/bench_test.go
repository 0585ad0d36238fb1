package hotrow

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// BenchmarkRowWritten is what a lane pays for each row, the clock included. There are no more rows
// than fit the caches: in a lane the row and its cells have just been built and sent.
func BenchmarkRowWritten(b *testing.B) {
	item := &change.Change{Op: change.Modify, Old: blank[:990], New: blank[:1000]}
	value := make([]transform.Cell, 8)
	for i := range value {
		value[i] = transform.Cell{Family: "d", Qualifier: blank[:6], Value: blank[:100]}
	}
	for _, c := range []struct {
		name  string
		class transform.Class
		rows  int
	}{{"own", transform.ClassR, 1 << 12}, {"shared", transform.ClassD, 1 << 12}, {"shared/by all", transform.ClassD, 1}} {
		rows := keys(c.rows)
		write := func() *transform.Write {
			return &transform.Write{Rows: []transform.Row{{Class: c.class, Cells: value}}}
		}
		b.Run(c.name, func(b *testing.B) {
			h := New(zap.NewNop(), time.Now())
			w := write()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.Rows[0].Key = rows[i%len(rows)]
				h.Wrote(time.Now(), w, item, item)
			}
		})
		b.Run(c.name+"/256 lanes", func(b *testing.B) {
			h := New(zap.NewNop(), time.Now())
			b.ReportAllocs()
			b.SetParallelism(256 / runtime.GOMAXPROCS(0))
			var lane atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				w := write()
				for i := int(lane.Add(1)) * 1000; pb.Next(); i++ {
					w.Rows[0].Key = rows[i%len(rows)]
					h.Wrote(time.Now(), w, item, item)
				}
			})
		})
	}
}
