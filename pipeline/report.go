package pipeline

import (
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// reportEvery is how many samples of the history lie between two reports: one a minute.
const reportEvery = int(time.Minute / latency.Every)

// report writes a line about the table, with status st, into the process's log: what it did in the
// last minute, and how it is. A table that another process owns has none.
func (v *tableView) report(st *status.Table) {
	counts := v.history.Counts()
	done := counts.Since(&v.reported)
	v.reported = counts
	if st.State == status.StandBy {
		return
	}
	v.log.Info("the last minute", st.LogFields(done.Total())...)
}
