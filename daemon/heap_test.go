package daemon

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
)

// TestManyTablesHoldLessGarbage: a hundred tables behind a backlog would else take 700 MB.
func TestManyTablesHoldLessGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	cfg := &config.Config{Tables: make([]config.Table, manyTables-1)}
	w := &HeapWatcher{adjusts: true}
	for _, want := range []int{gcPercent, gcManyTables} {
		w.Fit(cfg)
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("%d tables: %d %%, want %d", len(cfg.Tables), got, want)
		}
		cfg.Tables = append(cfg.Tables, config.Table{})
	}
}

// TestShareOfCollectionIsMeasured: the metrics of the runtime have the meaning that gcShare
// assumes.
func TestShareOfCollectionIsMeasured(t *testing.T) {
	before := takeSample()
	for range 20 {
		runtime.GC()
	}
	after := takeSample()
	share, _ := after.gcShare(before, time.Second)
	if share <= 0 || share > 1 || after.live <= 0 || after.stacks <= 0 {
		t.Errorf("%v of the CPU, %d bytes alive, %d of stacks", share, after.live, after.stacks)
	}
	busy := sample{gcSeconds: 3, cpuSeconds: 10}
	for want, s := range map[string]struct {
		sample sample
		wall   time.Duration
	}{
		"0.30 true":  {busy, 20 * time.Second},
		"0.30 false": {busy, 200 * time.Second}, // hardly any work at all
		"0.10 false": {sample{gcSeconds: 1, cpuSeconds: 10}, 20 * time.Second},
	} {
		share, much := s.sample.gcShare(sample{}, s.wall)
		if got := fmt.Sprintf("%.2f %v", share, much); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// deep fills a stack, and calls f on it.
func deep(calls int, f func()) (sum byte) {
	var frame [1024]byte
	if calls > 0 {
		frame[calls%len(frame)] = deep(calls-1, f)
	} else {
		f()
	}
	for _, b := range frame {
		sum += b
	}
	return sum
}

// TestLimitLeavesRoomForStacks that the process has now.
func TestLimitLeavesRoomForStacks(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	deep(50_000, func() { // 50 MB
		runtime.GC()
		synctest.Test(t, func(t *testing.T) {
			w := &HeapWatcher{adjusts: true}
			w.need.Store(&config.HeapNeed{Usual: 1, Most: before})
			ctx, cancel := context.WithTimeout(t.Context(), limitPeriod*3/2)
			defer cancel()
			if err := w.Run(ctx, zap.NewNop()); err != nil {
				t.Error(err)
			}
		})
		now := takeSample()
		// The stacks may have grown since the limit was set: those of the world that has ended are free.
		if limit := debug.SetMemoryLimit(-1); now.stacks < 40<<20 || limit < now.live+now.stacks/2 {
			t.Errorf("limit %d MiB at %d alive and %d of stacks", limit>>20, now.live>>20, now.stacks>>20)
		}
	})
}
