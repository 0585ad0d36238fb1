package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestReportSaysWhatTheLastMinuteBrought: changes are those since the report before. A stand-by has
// no line.
func TestReportSaysWhatTheLastMinuteBrought(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	h := &latency.Histogram{}
	v := &tableView{
		env:     &env{Table: Table{Source: "Orders", Target: "orders"}, log: zap.New(core)},
		history: latency.NewHistory(h, time.Now()),
	}
	for _, n := range []int{3, 0, 2} {
		for range n {
			h.Observe(2 * time.Second)
		}
		v.report(&status.Table{State: "running"})
	}
	v.report(&status.Table{State: status.StandBy}) // its owner reports
	var changes []uint64
	for _, line := range lines.All() {
		changes = append(changes, line.ContextMap()["changes"].(uint64))
	}
	if diff := cmp.Diff([]uint64{3, 0, 2}, changes); diff != "" {
		t.Errorf("changes of three reports (-want +got):\n%s", diff)
	}
}
