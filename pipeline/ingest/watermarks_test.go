package ingest

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestLowestLeavesOutShardsBeforeAGap: one that is not read would keep from the log how far the
// others are.
func TestLowestLeavesOutShardsBeforeAGap(t *testing.T) {
	w, shards := newWatermarks(), map[string]*checkpoint.Shard{}
	for id, at := range map[string]change.Millis{"gapped": 1000, "idle": 70_000, "busy": 90_000} {
		shards[id] = &checkpoint.Shard{ID: id, Phase: checkpoint.PhaseOpen, Watermark: at}
		w.add(shards[id])
	}
	for _, c := range []struct {
		pending []string
		want    change.Millis
	}{
		{nil, 1000},
		{[]string{"gapped"}, 70_000},
		{[]string{"gapped", "idle"}, 90_000},
		{[]string{"gapped", "idle", "busy"}, 0},
		{nil, 1000}, // accepted
	} {
		for _, sh := range shards {
			sh.Loss.Pending = false
		}
		for _, id := range c.pending {
			shards[id].Loss.Pending = true
		}
		if got := w.lowest(); got != c.want {
			t.Errorf("before gaps: %v: read through %d, want %d", c.pending, got, c.want)
		}
	}
}
