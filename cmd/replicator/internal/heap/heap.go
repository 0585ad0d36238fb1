// Package heap sizes the Go heap of `replicator run`: how much memory a configuration needs, and the memory limit of
// the running process, which follows the live bytes between that need and an upper bound.
package heap

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
)

// Need is the heap size of run under a configuration, garbage included.
type Need struct {
	Usual int64 // with items of a few KB
	Most  int64 // with items of hundreds of KB in every table, and a backfill that fills memory.copy
}

const (
	programPages = 64 << 20 // memory of the process outside the heap
	frameBytes   = 8 << 20  // per table: the entry that is being applied, unpacked and as pending writes
	pageBytes    = 2 << 20  // per table: the page that is being read
	blockBytes   = 8 << 20  // per log: the block that the embedded server writes and reads
)

// NeedOf estimates the heap. One table needs the memory of the configuration and more than half as much again, for the
// server's blocks, 256 workers of the lanes, connections and garbage. Each further table may hold an entry, a page and
// a block regardless of the budgets, so that no table waits for another one.
func NeedOf(cfg *config.Config) Need {
	perTable := int64(frameBytes + pageBytes)
	if cfg.Queue.URL == "" {
		perTable += blockBytes
	}
	usual := max(int64(cfg.Memory.Total)*3/2+8<<20, 128<<20) + perTable*int64(max(len(cfg.Tables)-1, 0))
	return Need{Usual: usual, Most: 2*usual + 128<<20 + 2*int64(cfg.Memory.Copy)}
}

// limit returns the heap limit for a number of live bytes: 1.5 times that, at least Usual and at most Most. With a
// lower limit the garbage collector runs so often that it takes up to half of the CPU.
func (n Need) limit(live int64) int64 { return min(max(live*3/2, n.Usual), n.Most) }

// ProcessBytes returns the memory of the whole process when its heap has the given size.
func ProcessBytes(heap int64) int64 { return heap + programPages }

// Shortage names the memory limit of this process that is below the need; it returns "" when every limit is high
// enough.
func (n Need) Shortage() string { return n.shortage(debug.SetMemoryLimit(-1), containerLimit()) }

func (n Need) shortage(goLimit, container int64) string {
	mib := func(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }
	switch {
	case goLimit < n.Usual:
		return fmt.Sprintf("the heap needs %s, $GOMEMLIMIT is %s", mib(n.Usual), mib(goLimit))
	case container < ProcessBytes(n.Usual):
		return fmt.Sprintf("the process needs %s, its control group has %s", mib(ProcessBytes(n.Usual)), mib(container))
	}
	return ""
}

// containerLimit returns the memory limit of the control group of this process, or the largest number if there is none.
func containerLimit() int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bad != nil {
		return math.MaxInt64
	}
	return n
}

// Watcher adjusts the heap limit of this process and measures how much CPU garbage collection takes.
type Watcher struct {
	need        atomic.Pointer[Need]
	adjusts     bool          // Watcher sets the limit: neither $GOMEMLIMIT nor $GOGC is given
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

// NewWatcher sets the initial heap limit, unless $GOMEMLIMIT or $GOGC is given, and registers the metric of the
// collector's share of the CPU.
func NewWatcher(cfg *config.Config, reg prometheus.Registerer) *Watcher {
	w := &Watcher{adjusts: os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == ""}
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
func (w *Watcher) Fit(cfg *config.Config) {
	need := NeedOf(cfg)
	w.need.Store(&need)
	if w.adjusts {
		debug.SetGCPercent(percentFor(len(cfg.Tables)))
	}
}

// percentFor returns how much garbage, in percent of the live bytes, a process with so many tables may hold.
func percentFor(tables int) int {
	if tables >= manyTables {
		return gcManyTables
	}
	return gcPercent
}

// Run adjusts the limit every second and measures the collector's share every minute, until ctx ends. It returns nil
// then.
func (w *Watcher) Run(ctx context.Context, log *zap.Logger) error {
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
		if next := w.need.Load().limit(now.live); w.adjusts && next != limit {
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
	gcSeconds  float64 // CPU seconds of garbage collection since the process began
	cpuSeconds float64 // CPU seconds of everything since the process began, without idle time
}

func takeSample() sample {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"},
	}
	metrics.Read(s)
	return sample{
		live: int64(s[0].Value.Uint64()), gcSeconds: s[1].Value.Float64(),
		cpuSeconds: s[2].Value.Float64() - s[3].Value.Float64(),
	}
}

// gcShare returns the share of garbage collection in the CPU time since an earlier sample, and whether that is too
// high. No share is too high while the process is almost idle.
func (s sample) gcShare(since sample, wall time.Duration) (share float64, high bool) {
	cpu := s.cpuSeconds - since.cpuSeconds
	if cpu <= 0 {
		return 0, false
	}
	share = (s.gcSeconds - since.gcSeconds) / cpu
	return share, share > highGCShare && cpu > wall.Seconds()/busyFraction
}
