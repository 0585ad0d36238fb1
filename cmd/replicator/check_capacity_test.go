package main

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

func TestVolumeTooSmallForTheLogsIsFound(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		disk embedded.Disk
		want string
	}{
		"room for all":        {embedded.Disk{Left: 50 * gib, Untaken: 40 * gib, PauseBelow: 8 * gib}, ""},
		"less than the logs":  {embedded.Disk{Left: 30 * gib, Untaken: 40 * gib, PauseBelow: 8 * gib}, "warning disk_short: the logs may still take 40 GiB, the volume of ./log has 30 GiB"},
		"reading would pause": {embedded.Disk{Left: 7 * gib, Untaken: 40 * gib, PauseBelow: 8 * gib, Low: true}, "error disk_low: the volume of ./log has 7.0 GiB left for the logs; reading pauses below 8.0 GiB"},
	} {
		got := ""
		for _, p := range diskProblems(c.disk, "./log") {
			got += p.Severity + " " + p.Code + ": " + p.What
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLimitWithoutRoomForTwoSnapshotsIsRefused(t *testing.T) {
	const snapshot = 5 << 20
	if p, bad := limitProblem("Orders", snapshot, 99<<20); !bad || p.Severity != "error" || p.Hint != "queue.max_bytes: 100MiB or more" {
		t.Errorf("99 MiB: %v %+v", bad, p)
	}
	for _, limit := range []int64{100 << 20, 20 << 30} {
		if p, bad := limitProblem("Orders", snapshot, limit); bad {
			t.Errorf("%d: %+v", limit, p)
		}
	}
	if p, bad := limitProblem("Orders", 0, 64<<20); bad {
		t.Errorf("no snapshot yet: %+v", p)
	}
}

func TestNeededMemoryIsReported(t *testing.T) {
	cfg := config.Default()
	u := &checkup{cfg: &cfg, cost: map[string]any{}}
	u.memory()
	if u.cost["memory_bytes"] != int64((152+64)<<20) || u.cost["memory_bytes_large_items"] != int64((2*152+128+64)<<20) {
		t.Error(u.cost)
	}
}
