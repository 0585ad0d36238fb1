package main

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

// heapNeed is how large the heap of run gets by its configuration, garbage included.
type heapNeed struct {
	usual int64 // with items of a few KB
	most  int64 // with items of hundreds of KB in every table
}

const (
	programPages = 64 << 20 // of the process that are no heap
	frameBytes   = 8 << 20  // of a table's entry that is being applied: unpacked, and on its way
	pageBytes    = 2 << 20  // of a table's page that is being read
	blockBytes   = 8 << 20  // of the embedded server for each log: the block that it writes and reads
)

// needOf estimates the heap. For one table it is the memory of the configuration, and more than half as much again for
// the server's blocks, 256 workers of the lanes, connections and garbage. Each further table may have an entry, a page
// and a block in hand whatever the budgets say, so that none waits for another one.
func needOf(cfg *config.Config) heapNeed {
	each := int64(frameBytes + pageBytes)
	if cfg.Queue.URL == "" {
		each += blockBytes
	}
	usual := max(int64(cfg.Memory.Total)*3/2+8<<20, 128<<20) + each*int64(max(len(cfg.Tables)-1, 0))
	return heapNeed{usual: usual, most: 2*usual + 128<<20}
}

// limit returns the heap's limit for a number of live bytes: half as much again, within usual and most. With less room
// the garbage collector runs so often that it takes up to half of the CPU.
func (n heapNeed) limit(alive int64) int64 { return min(max(alive*3/2, n.usual), n.most) }

// process returns the memory of the whole process when its heap has this size.
func process(heap int64) int64 { return heap + programPages }

// shortOf says which memory limit is below what is needed; "" when each is large enough.
func (n heapNeed) shortOf(goLimit, container int64) string {
	mib := func(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }
	switch {
	case goLimit < n.usual:
		return fmt.Sprintf("the heap needs %s, $GOMEMLIMIT is %s", mib(n.usual), mib(goLimit))
	case container < process(n.usual):
		return fmt.Sprintf("the process needs %s, its control group has %s", mib(process(n.usual)), mib(container))
	}
	return ""
}

// memory notes what the configuration needs, and whether that is there.
func (u *checkup) memory() {
	n := needOf(u.cfg)
	u.cost["memory_bytes"], u.cost["memory_bytes_large_items"] = process(n.usual), process(n.most)
	if short := n.shortOf(debug.SetMemoryLimit(-1), containerMemory()); short != "" {
		u.around = append(u.around, config.Problem{Severity: "warning", Code: "memory", Path: "memory.total", What: short,
			Hint: "give it more, lower memory.total, or carry fewer tables in one process: else collecting garbage takes the CPU"})
	}
}

func (a *app) printMemory(u *checkup) {
	usual, known := u.cost["memory_bytes"].(int64)
	if !known {
		return
	}
	most := u.cost["memory_bytes_large_items"].(int64)
	a.print("memory: run takes about %d MiB, up to %d MiB with items of hundreds of KB in every table", usual>>20, most>>20)
}

// containerMemory is the limit of the control group that check runs in; without one, no limit.
func containerMemory() int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bad != nil {
		return math.MaxInt64
	}
	return n
}

// heapWatch keeps the heap's limit, and watches how much of the CPU collection takes.
type heapWatch struct {
	need  heapNeed
	own   bool          // the limit is ours to set: neither $GOMEMLIMIT nor $GOGC is given
	share atomic.Uint64 // of the CPU in the last period: a float64
}

const (
	limitPeriod  = time.Second
	sharePeriod  = time.Minute
	muchCollects = 0.2
)

func watchHeap(cfg *config.Config, reg prometheus.Registerer) *heapWatch {
	h := &heapWatch{need: needOf(cfg), own: os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == ""}
	if h.own {
		debug.SetMemoryLimit(h.need.usual)
		debug.SetGCPercent(200) // rarer collections save little CPU, and idle shards would take twice the memory
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tailrace_collection_cpu_ratio",
		Help: "Part of the process's CPU time that garbage collection took in the last minute; above 0.2 it needs memory."},
		func() float64 { return math.Float64frombits(h.share.Load()) }))
	return h
}

// run works until ctx ends.
func (h *heapWatch) run(ctx context.Context, log *zap.Logger) error {
	tick := time.NewTicker(limitPeriod)
	defer tick.Stop()
	last, since := readHeap(), time.Now()
	for limit := h.need.usual; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := readHeap()
		if next := h.need.limit(now.alive); h.own && next != limit {
			limit = next
			debug.SetMemoryLimit(limit)
		}
		if time.Since(since) < sharePeriod {
			continue
		}
		share, much := now.collected(last, time.Since(since))
		h.share.Store(math.Float64bits(share))
		if much {
			log.Warn("garbage collection takes much of the CPU: give the process more memory, or carry fewer tables in it",
				zap.Float64("share", share), zap.Int64("live_bytes", now.alive), zap.Int64("limit_bytes", debug.SetMemoryLimit(-1)))
		}
		last, since = now, time.Now()
	}
}

// heapSample is what the runtime says.
type heapSample struct {
	alive           int64   // bytes, by the last collection
	collecting, all float64 // CPU seconds since the process began
}

func readHeap() heapSample {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"},
	}
	metrics.Read(s)
	return heapSample{
		alive: int64(s[0].Value.Uint64()), collecting: s[1].Value.Float64(), all: s[2].Value.Float64() - s[3].Value.Float64(),
	}
}

// collected is the share of collection in the CPU time since an earlier sample, and whether that is much: of a process
// that hardly works it is not, whatever the share.
func (s heapSample) collected(since heapSample, wall time.Duration) (share float64, much bool) {
	all := s.all - since.all
	if all <= 0 {
		return 0, false
	}
	share = (s.collecting - since.collecting) / all
	return share, share > muchCollects && all > wall.Seconds()/10
}
