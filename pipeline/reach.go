package pipeline

import (
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
)

// measuredChanges is how many changes it takes until the calls of one of them are known.
const measuredChanges = 100

// way returns what the changes of the table meet, as this process measures it; nil before the first
// call to Bigtable. The shards are left out.
func (v *tableView) way(s *snapshot) *limit.Way {
	took := time.Duration(v.callTook.Load())
	if took == 0 || s.parts.sink == nil {
		return nil
	}
	load := v.bigtable.Load(v.Target)
	w := &limit.Way{ItemBytes: limit.SmallItem, Rows: 1, Latency: took, Processors: v.o.Processors}
	w.Calls = min(load.Most, s.parts.sink.Lanes())
	if most := apply.MostInFlight(v.o.Calls); most < w.Calls {
		w.Calls, w.ByMemory = most, true
	}
	if w.Calls == 0 {
		return nil
	}
	if reads := v.source.Reads(v.Source); reads.Records > 0 {
		w.ItemBytes = limit.ItemBytes(float64(reads.Bytes) / float64(reads.Records))
	}
	counts := v.history.Counts()
	if n := counts.Total(); n >= measuredChanges && load.Stream > 0 {
		w.Rows = float64(load.Stream) / float64(n)
	}
	return w
}
