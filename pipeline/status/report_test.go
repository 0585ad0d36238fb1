package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"
)

func TestReportLeavesOutWhatIsNotKnown(t *testing.T) {
	pending := uint64(7)
	for name, c := range map[string]struct {
		st   Table
		want []string
	}{
		"nothing is known": {Table{State: "waiting", AppliedLag: -1}, []string{
			"state", "changes", "log_bytes", "log_limit", "dead_letters", "gaps",
		}},
		"running": {Table{State: "running", Pending: &pending, Latency: &Latency{P50: 1, P99: 2}}, []string{
			"state", "changes", "latency_p50_s", "latency_p99_s", "pending_changes", "applied_lag_s", "log_bytes", "log_limit",
			"dead_letters", "gaps",
		}},
	} {
		var keys []string
		for _, f := range c.st.LogFields(0) {
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
