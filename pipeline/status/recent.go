package status

import (
	"math"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
)

// Latency is the time in seconds from the creation of a change at DynamoDB until it was durable in
// Bigtable, for half and for 99 % of the changes of the last five minutes. It may be up to a second
// high: see latency.Resolution.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// takePending takes how many changes Bigtable has not got: none where its mark has passed the last
// one.
func (st *Table) takePending(x Seen) {
	mark, replicated := x.State.Marks[checkpoint.SinkBigtable]
	switch n := uint64(0); {
	case !replicated:
	case mark.Seq >= x.State.LastFrame:
		st.Pending = &n
	case x.Pending != nil:
		if n, known := x.Pending(x.State.Changes); known {
			st.Pending = &n
		}
	case x.Live != nil:
		st.Pending = x.Live.Pending
	}
}

// takeRecent takes what the table did in the last minutes.
func (st *Table) takeRecent(r *latency.Recent) {
	if r == nil {
		return
	}
	if !math.IsNaN(r.P50) {
		st.Latency = &Latency{P50: rounded(r.P50), P99: rounded(r.P99)}
	}
	if !math.IsNaN(r.Rate) {
		perSecond := rounded(r.Rate)
		st.Rate = &perSecond
	}
}

// takeLimit takes what limits the table, and how much it can reach. A table that stands still is
// limited by what its state says.
func (st *Table) takeLimit(f *limit.Facts, way *limit.Way) {
	if f == nil || st.State == "halted" {
		return
	}
	if way != nil {
		w := *way
		w.Shards = st.Shards.Open
		carried := w.Carried()
		st.Carries = &carried
	}
	st.LimitedBy = limit.Judge(f)
	if calls := f.Calls; st.Target != "" {
		st.Calls = &calls
	}
}

// rounded keeps two digits behind the point: more of them would say nothing.
func rounded(x float64) float64 { return math.Round(x*100) / 100 }
