package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestReportSaysWhatTheLastMinuteBrought: changes are those since the report before. A stand-by has no
// line.
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

func TestReportLeavesOutWhatIsNotKnown(t *testing.T) {
	pending := uint64(7)
	for name, c := range map[string]struct {
		st   status.Table
		want []string
	}{
		"nothing is known": {status.Table{State: "waiting", AppliedLag: -1}, []string{
			"state", "changes", "log_bytes", "log_limit", "dead_letters", "gaps",
		}},
		"running": {status.Table{State: "running", Pending: &pending, Latency: &status.Latency{P50: 1, P99: 2}}, []string{
			"state", "changes", "latency_p50_s", "latency_p99_s", "pending_changes", "applied_lag_s", "log_bytes", "log_limit",
			"dead_letters", "gaps",
		}},
	} {
		var keys []string
		for _, f := range reportFields(&c.st, 0) {
			keys = append(keys, f.Key)
			if f.Type == zapcore.SkipType {
				t.Errorf("%s: %s has no value", name, f.Key)
			}
		}
		if diff := cmp.Diff(c.want, keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
