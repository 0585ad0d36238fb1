package limit

import (
	"testing"
	"time"
)

// TestWayCarriesWhatItsNarrowestPartDoes.
func TestWayCarriesWhatItsNarrowestPartDoes(t *testing.T) {
	usual := Way{ItemBytes: SmallItem, Rows: 1, Latency: 10 * time.Millisecond, Calls: 2048, Shards: 100, Processors: 2}
	for name, c := range map[string]struct {
		change  func(*Way)
		by      By
		changes int64
	}{
		"two processors":  {func(*Way) {}, CPU, 40_000},
		"two rows":        {func(w *Way) { w.Rows = 2 }, CPU, 20_000},
		"far away":        {func(w *Way) { w.Latency = 100 * time.Millisecond }, Latency, 20_480},
		"little memory":   {func(w *Way) { w.Calls, w.ByMemory = 200, true }, Memory, 20_000},
		"many processors": {func(w *Way) { w.Processors = 64 }, Log, 51_062},
		"one shard":       {func(w *Way) { w.Shards = 1 }, Source, 976},
		"shards unknown":  {func(w *Way) { w.Shards = 0 }, CPU, 40_000},
		"large items":     {func(w *Way) { w.ItemBytes = ItemBytes(2*100<<10 + recordBytes) }, CPU, 400},
	} {
		w := usual
		c.change(&w)
		if got := w.Carried(); got.LimitedBy != c.by || got.Changes != c.changes || got.Calls != w.Calls ||
			got.LatencyMS != float64(w.Latency.Milliseconds()) {
			t.Errorf("%s: %+v, want %d by %s", name, got, c.changes, c.by)
		}
	}
	if got := ItemBytes(10); got != 1 {
		t.Errorf("a record smaller than JSON around it has an item of %g bytes", got)
	}
}
