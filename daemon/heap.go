package daemon

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
)

// HeapWatcher adjusts the heap limit of this process and measures how much CPU garbage collection
// takes.
type HeapWatcher struct {
	need        atomic.Pointer[config.HeapNeed]
	adjusts     bool          // HeapWatcher sets the limit: neither $GOMEMLIMIT nor $GOGC is given
	gcShareBits atomic.Uint64 // a float64: share of garbage collection in the CPU time of the last period
}

const (
	limitPeriod  = time.Second
	sharePeriod  = time.Minute
	highGCShare  = 0.2
	gcPercent    = 200 // a higher value saves little CPU and takes twice the memory with idle shards
	gcManyTables = 40  // from manyTables on: behind a backlog each of them has buffers in use at the same moment
	manyTables   = 20
	busyFraction = 10 // a share is reported only if the process used a tenth of one CPU
)

// NewHeapWatcher sets the initial heap limit, unless $GOMEMLIMIT or $GOGC is given, and registers
// the metric of the collector's share of the CPU.
func NewHeapWatcher(cfg *config.Config, reg prometheus.Registerer) *HeapWatcher {
	w := &HeapWatcher{adjusts: os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == ""}
	w.Fit(cfg)
	if w.adjusts {
		debug.SetMemoryLimit(w.need.Load().Usual)
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tailrace_collection_cpu_ratio",
		Help: "Part of the process's CPU time that garbage collection took in the last minute; above 0.2 it needs memory."},
		func() float64 { return math.Float64frombits(w.gcShareBits.Load()) }))
	return w
}

// Fit takes over the needs of a configuration that has other tables.
func (w *HeapWatcher) Fit(cfg *config.Config) {
	need := cfg.HeapNeed()
	w.need.Store(&need)
	if w.adjusts {
		debug.SetGCPercent(percentFor(len(cfg.Tables)))
	}
}

// percentFor returns how much garbage, in percent of the live bytes, a process with so many tables
// may hold.
func percentFor(tables int) int {
	if tables >= manyTables {
		return gcManyTables
	}
	return gcPercent
}

// Run adjusts the limit every second and measures the collector's share every minute, until ctx
// ends. It returns nil then.
func (w *HeapWatcher) Run(ctx context.Context, log *zap.Logger) error {
	tick := time.NewTicker(limitPeriod)
	defer tick.Stop()
	last, since := takeSample(), time.Now()
	for limit := w.need.Load().Usual; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := takeSample()
		if next := w.need.Load().Limit(now.live, now.stacks); w.adjusts && next != limit {
			limit = next
			debug.SetMemoryLimit(limit)
		}
		if time.Since(since) < sharePeriod {
			continue
		}
		share, high := now.gcShare(last, time.Since(since))
		w.gcShareBits.Store(math.Float64bits(share))
		if high {
			log.Warn("garbage collection takes much of the CPU: give the process more memory, or replicate fewer tables in it",
				zap.Float64("share", share), zap.Int64("live_bytes", now.live), zap.Int64("limit_bytes", debug.SetMemoryLimit(-1)))
		}
		last, since = now, time.Now()
	}
}

// sample is a reading of the runtime's own metrics.
type sample struct {
	live       int64   // bytes of live objects, as of the last collection
	stacks     int64   // bytes of the stacks of goroutines
	gcSeconds  float64 // CPU seconds of garbage collection since the process began
	cpuSeconds float64 // CPU seconds of everything since the process began, without idle time
}

func takeSample() sample {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(s)
	return sample{
		live: int64(s[0].Value.Uint64()), stacks: int64(s[4].Value.Uint64()), gcSeconds: s[1].Value.Float64(),
		cpuSeconds: s[2].Value.Float64() - s[3].Value.Float64(),
	}
}

// gcShare returns the share of garbage collection in the CPU time since an earlier sample, and
// whether that is too high. No share is too high while the process is almost idle.
func (s sample) gcShare(since sample, wall time.Duration) (share float64, high bool) {
	cpu := s.cpuSeconds - since.cpuSeconds
	if cpu <= 0 {
		return 0, false
	}
	share = (s.gcSeconds - since.gcSeconds) / cpu
	return share, share > highGCShare && cpu > wall.Seconds()/busyFraction
}
