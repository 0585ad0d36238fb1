package status

import "go.uber.org/zap"

// LogFields returns the fields of the log line of a table, once a minute, in which so many changes
// were applied. What is not known is left out.
func (st *Table) LogFields(changes uint64) []zap.Field {
	fields := []zap.Field{zap.String("state", st.State), zap.Uint64("changes", changes)}
	if st.Latency != nil {
		fields = append(fields, zap.Float64("latency_p50_s", st.Latency.P50), zap.Float64("latency_p99_s", st.Latency.P99))
	}
	if st.Pending != nil {
		fields = append(fields, zap.Uint64("pending_changes", *st.Pending))
	}
	if st.LimitedBy != "" {
		fields = append(fields, zap.String("limited_by", string(st.LimitedBy)))
	}
	if c := st.Calls; c != nil {
		fields = append(fields, zap.Int("calls_in_flight", c.InFlight), zap.Int("calls_bound", c.Bound))
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
