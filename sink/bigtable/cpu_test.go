package bigtable

import (
	"math"
	goruntime "runtime/metrics"
	"testing"
)

// TestProcessorsAreShort: where goroutines wait for them three milliseconds or longer in the mean of the
// last period, whatever was before it.
func TestProcessorsAreShort(t *testing.T) {
	edges := []float64{math.Inf(-1), 0, 0.001, 0.006, 0.01, math.Inf(1)}
	var w cpuWatch
	all := make([]uint64, len(edges)-1)
	for i, c := range []struct {
		waits []uint64
		short bool
	}{
		{[]uint64{0, 1000, 0, 0, 0}, false},
		{[]uint64{0, 100, 0, 100, 0}, false}, // 3 ms in the mean
		{[]uint64{0, 100, 0, 300, 0}, true},
		{[]uint64{0, 1000, 500, 0, 0}, false},
		{[]uint64{0, 0, 0, 0, 50}, false}, // too few
		{[]uint64{0, 0, 0, 0, 500}, true},
	} {
		for b, n := range c.waits {
			all[b] += n
		}
		w.observe(&goruntime.Float64Histogram{Counts: all, Buckets: edges})
		if w.Short() != c.short {
			t.Errorf("period %d: short is %t", i, w.Short())
		}
	}
}
