package main

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/config"
)

// The limit of one table is too small for ten: collecting would take the CPU from the work.
func TestHeapNeedGrowsWithTheTables(t *testing.T) {
	need := func(tables int, url string) heapNeed {
		cfg := config.Default()
		cfg.Tables, cfg.Queue.URL = make([]config.Table, tables), url
		return needOf(&cfg)
	}
	one, ten, fifty := need(1, ""), need(10, ""), need(50, "")
	if one.usual != 152<<20 {
		t.Errorf("one table needs %d MiB", one.usual>>20)
	}
	// Ten tables with a backlog have 110 to 130 MiB alive, one of 100 KB items 150.
	if ten.usual < 2*130<<20 || fifty.usual < 4*ten.usual/2 || one.most < 2*150<<20 {
		t.Errorf("10 tables need %d MiB, 50 %d, one of large items %d", ten.usual>>20, fifty.usual>>20, one.most>>20)
	}
	if out := need(10, "nats://x"); out.usual >= ten.usual {
		t.Errorf("without a server inside 10 tables need %d MiB", out.usual>>20)
	}
}

// However much is alive, there is room for half as much again, up to what the configuration can need.
func TestHeapLimitGivesWayToWhatIsAlive(t *testing.T) {
	n := heapNeed{usual: 150 << 20, most: 400 << 20}
	for alive, want := range map[int64]int64{0: 150, 50: 150, 100: 150, 150: 225, 200: 300, 500: 400} {
		if got := n.limit(alive << 20); got != want<<20 {
			t.Errorf("limit %d MiB at %d alive, want %d", got>>20, alive, want)
		}
	}
}

func TestCheckComparesTheNeedWithTheLimits(t *testing.T) {
	n := heapNeed{usual: 300 << 20, most: 700 << 20}
	for _, c := range []struct {
		goLimit, container int64
		want               string
	}{
		{math.MaxInt64, math.MaxInt64, ""},
		{200 << 20, math.MaxInt64, "the heap needs 300 MiB, $GOMEMLIMIT is 200 MiB"},
		{math.MaxInt64, 350 << 20, "the process needs 364 MiB, its control group has 350 MiB"},
		{math.MaxInt64, 400 << 20, ""},
	} {
		if got := n.shortOf(c.goLimit, c.container); got != c.want {
			t.Errorf("%d, %d: %q", c.goLimit>>20, c.container>>20, got)
		}
	}
	cfg := config.Default()
	u := &checkup{cfg: &cfg, cost: map[string]any{}}
	u.memory()
	if u.cost["memory_bytes"] != int64((152+64)<<20) || u.cost["memory_bytes_large_items"] != int64((2*152+128+64)<<20) {
		t.Error(u.cost)
	}
}

// The runtime's figures say what they are taken to say.
func TestShareOfCollectionIsMeasured(t *testing.T) {
	before := readHeap()
	for range 20 {
		runtime.GC()
	}
	after := readHeap()
	share, _ := after.collected(before, time.Second)
	if share <= 0 || share > 1 || after.alive <= 0 {
		t.Errorf("%v of the CPU, %d bytes alive", share, after.alive)
	}
	busy := heapSample{collecting: 3, all: 10}
	for want, s := range map[string]struct {
		sample heapSample
		wall   time.Duration
	}{
		"0.30 true":  {busy, 20 * time.Second},
		"0.30 false": {busy, 200 * time.Second}, // hardly any work at all
		"0.10 false": {heapSample{collecting: 1, all: 10}, 20 * time.Second},
	} {
		share, much := s.sample.collected(heapSample{}, s.wall)
		if got := fmt.Sprintf("%.2f %v", share, much); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
