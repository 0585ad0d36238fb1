package bigtable

import (
	"context"
	goruntime "runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	cpuTick = 200 * time.Millisecond
	// cpuShort is the mean time that goroutines wait for a processor above which this machine, and
	// not Bigtable, limits the calls. A call waits for a processor several times.
	cpuShort = 3 * time.Millisecond
	// cpuFewest is how many waits a sample needs: fewer show too little.
	cpuFewest = 100
)

// cpuWatch observes whether goroutines of this process wait for a processor. More calls in flight
// would not help then: each takes memory, and waits for a processor too.
type cpuWatch struct {
	short  atomic.Bool
	before goruntime.Float64Histogram // the reading before
}

// Short reports whether the processors limit the calls.
func (w *cpuWatch) Short() bool { return w.short.Load() }

// run observes until ctx ends.
func (w *cpuWatch) run(ctx context.Context) error {
	tick := time.NewTicker(cpuTick)
	defer tick.Stop()
	sample := []goruntime.Sample{{Name: "/sched/latencies:seconds"}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		goruntime.Read(sample)
		w.observe(sample[0].Value.Float64Histogram())
	}
}

// observe takes the next reading of the runtime's histogram of waits since the process began.
func (w *cpuWatch) observe(now *goruntime.Float64Histogram) {
	var waits uint64
	var seconds float64
	for i, n := range now.Counts {
		if len(w.before.Counts) == len(now.Counts) {
			n -= w.before.Counts[i]
		}
		waits += n
		seconds += float64(n) * max(now.Buckets[i], 0) // the lower edge of the bucket, so never too long
	}
	w.before.Counts = append(w.before.Counts[:0], now.Counts...)
	w.short.Store(waits >= cpuFewest && seconds/float64(waits) > cpuShort.Seconds())
}
