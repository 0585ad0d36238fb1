package preflight

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
)

// TestCeiling: the part that carries least limits, and each key that bounds a copy is named.
func TestCeiling(t *testing.T) {
	usual := func() *load {
		return &load{
			Way:  limit.Way{Rows: 1, Latency: 10 * time.Millisecond, Calls: 2048, Shards: 100, Processors: 2},
			info: &source.TableInfo{Items: 36_000_000, Bytes: 36_000_000 << 10}, backfill: &config.Backfill{From: "scan"},
			copyMemory: 128 << 20,
		}
	}
	for name, c := range map[string]struct {
		change  func(*load)
		by      limit.By
		changes int64
		copyBy  limit.By
		hours   float64
	}{
		"two processors":  {func(*load) {}, limit.CPU, 40_000, byReadUnits, 5},
		"many processors": {func(l *load) { l.Processors = 64 }, limit.Log, 51_062, byReadUnits, 5},
		"far away":        {func(l *load) { l.Latency = 100 * time.Millisecond }, limit.Latency, 20_480, byReadUnits, 5},
		"little memory": {
			func(l *load) { l.Calls, l.ByMemory, l.callsBy = 200, true, byMemory }, limit.Memory, 20_000, byReadUnits, 5,
		},
		"half a processor": {func(l *load) { l.Processors = 0.5 }, limit.CPU, 10_000, byReadUnits, 5},
		"two rows":         {func(l *load) { l.Rows = 2 }, limit.CPU, 20_000, byReadUnits, 5},
		"large items":      {func(l *load) { l.info.Items /= 100 }, limit.CPU, 400, byReadUnits, 5},
		"one shard":        {func(l *load) { l.Shards = 1 }, limit.Source, 976, byReadUnits, 5},
		"shards not known": {func(l *load) { l.Shards = 0 }, limit.CPU, 40_000, byReadUnits, 5},
		"nothing to copy":  {func(l *load) { l.backfill = nil }, limit.CPU, 40_000, "", 0},
		"an export":        {func(l *load) { l.backfill.From = "export" }, limit.CPU, 40_000, limit.Memory, 0.31},
		"an export, memory": {
			func(l *load) { l.backfill.From, l.copyMemory = "export", 1<<30 }, limit.CPU, 40_000, limit.CPU, 0.27,
		},
		"read units":         {func(l *load) { l.backfill.ReadUnits.Absolute = 5000 }, limit.CPU, 40_000, byReadUnits, 0.5},
		"write rows":         {func(l *load) { l.backfill.WriteRows = 1000 }, limit.CPU, 40_000, byWriteRows, 10},
		"write rows of two":  {func(l *load) { l.backfill.WriteRows, l.Rows = 1000, 2 }, limit.CPU, 20_000, byWriteRows, 20},
		"an empty table":     {func(l *load) { l.info.Items, l.info.Bytes = 0, 0 }, limit.CPU, 40_000, byReadUnits, 0},
		"no time at all":     {func(l *load) { l.Latency = 0 }, limit.CPU, 40_000, byReadUnits, 5},
		"a share of nothing": {func(l *load) { l.backfill.ReadUnits.Percent = 50 }, limit.CPU, 40_000, byReadUnits, 5},
	} {
		t.Run(name, func(t *testing.T) {
			l := usual()
			c.change(l)
			l.ItemBytes = itemBytes(l.info)
			got := l.ceiling()
			if got.LimitedBy != c.by || got.Changes != c.changes {
				t.Errorf("%d changes a second by %s, want %d by %s of %v", got.Changes, got.LimitedBy, c.changes, c.by,
					got.Ceilings)
			}
			if got.CopyLimitedBy != c.copyBy || got.CopyHours != c.hours {
				t.Errorf("copied in %g hours by %q, want %g by %q of %v", got.CopyHours, got.CopyLimitedBy, c.hours, c.copyBy,
					got.CopyCeilings)
			}
			if lowest := slices.Min(slices.Collect(maps.Values(got.Ceilings))); lowest != got.Changes {
				t.Errorf("the lowest ceiling is %d", lowest)
			}
			if got.Remedy() == "" {
				t.Error("no remedy")
			}
		})
	}
}

// TestRemediesOfOneTable: each is of what bounds it. No other replica carries a part of a table,
// and no higher max_in_flight helps where something else bounds the calls.
func TestRemediesOfOneTable(t *testing.T) {
	for name, c := range map[string]struct {
		ceiling  Ceiling
		has, not string
	}{
		"CPU":     {Ceiling{LimitedBy: limit.CPU}, "processors", "replica"},
		"source":  {Ceiling{LimitedBy: limit.Source}, "splits the shards", "reader"},
		"memory":  {Ceiling{LimitedBy: limit.Memory, callsBy: byMemory}, "memory.total", "max_in_flight"},
		"log":     {Ceiling{LimitedBy: limit.Log}, "gp3", "max_bytes"},
		"latency": {Ceiling{LimitedBy: limit.Latency, Calls: 2048}, "max_in_flight above 2048", "tables"},
		"the highest max_in_flight": {
			Ceiling{LimitedBy: limit.Latency, Calls: limit.MostCalls}, "nearer", "max_in_flight",
		},
		"many tables": {
			Ceiling{LimitedBy: limit.Latency, Calls: 1024, callsBy: byTables}, "fewer tables", "max_in_flight",
		},
		"rows that are removed": {
			Ceiling{LimitedBy: limit.Latency, Calls: 256, callsBy: byTurns}, "on_remove: row", "max_in_flight",
		},
	} {
		if got := c.ceiling.Remedy(); !strings.Contains(got, c.has) || strings.Contains(got, c.not) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestHighestMaxInFlight: no remedy names more than the configuration takes.
func TestHighestMaxInFlight(t *testing.T) {
	for calls, refused := range map[int]bool{limit.MostCalls: false, limit.MostCalls + 1: true} {
		file := filepath.Join(t.TempDir(), "tailrace.yaml")
		text := fmt.Sprintf("bigtable: {max_in_flight: %d}\n", calls)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, problems, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(problems, func(p problem.Problem) bool { return p.Path == "bigtable.max_in_flight" })
		if found != refused {
			t.Errorf("%d calls: %+v", calls, problems)
		}
	}
}
