package pipeline

import (
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// reportEvery is how many samples of the history lie between two reports: one a minute.
const reportEvery = int(time.Minute / latency.Every)

// report writes a line about the table, whose status is st, into the process's log: what it did in the last minute, and
// how it is. A table that another process owns has none.
func (v *tableView) report(st *status.Table) {
	counts := v.history.Counts()
	done := counts.Since(&v.reported)
	v.reported = counts
	if st.State == status.StandBy {
		return
	}
	v.log.Info("the last minute", reportFields(st, done.Total())...)
}

// reportFields returns what a line about a table says. What is not known is left out.
func reportFields(st *status.Table, changes uint64) []zap.Field {
	fields := []zap.Field{zap.String("state", st.State), zap.Uint64("changes", changes)}
	if st.Latency != nil {
		fields = append(fields, zap.Float64("latency_p50_s", st.Latency.P50), zap.Float64("latency_p99_s", st.Latency.P99))
	}
	if st.Pending != nil {
		fields = append(fields, zap.Uint64("pending_changes", *st.Pending))
	}
	if st.AppliedLag >= 0 {
		fields = append(fields, zap.Float64("applied_lag_s", st.AppliedLag))
	}
	fields = append(fields, zap.Uint64("log_bytes", st.Queue.Bytes), zap.Uint64("log_limit", st.Queue.Limit),
		zap.Int("dead_letters", st.DeadLetters), zap.Int("gaps", st.Gaps))
	if c := st.Copy; c != nil {
		fields = append(fields, zap.String("copy", c.Sentence()))
	}
	if a := st.Archive; a != nil {
		fields = append(fields, zap.Int64("unarchived_events", a.Waiting))
	}
	return fields
}
