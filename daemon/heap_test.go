package daemon

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

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
