package resync

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestLogSaysHowACopyStands at the beginning of each life: one line, with the reason of a pause,
// and once that it was cancelled.
func TestLogSaysHowACopyStands(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	s := &Stats{}
	c := &checkpoint.CopyState{Copy: checkpoint.Copy{ID: "backfill-1", Parts: 2}}
	tell := func() { s.Tell(zap.New(core), c, 5) }
	tell()
	c.Paused = true
	tell()
	c.Paused, c.PausedWhy = false, "1,000 items were refused"
	tell()
	c.PausedWhy, c.Canceled = "", true
	tell()
	tell()
	c = nil
	tell()
	var got []string
	for _, l := range logged.All() {
		reason, _ := l.ContextMap()["reason"].(string)
		got = append(got, l.Message+"|"+reason)
	}
	want := []string{
		"the copy goes on|", "the copy is paused|by an operator: go on with `replicator copy resume`",
		"the copy is paused|1,000 items were refused",
		"the copy is cancelled: the items that it has not copied are missing until they change or a resync|",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
