package pipeline_test

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// away writes an item while the pipeline is away for longer than DynamoDB keeps it, and one after
// that.
func (w *world) away(gone func()) {
	w.t.Helper()
	w.clock.Advance(time.Hour)
	w.put("Orders", "p", "lost", `"v":{"N":"1"}`)
	w.clock.Advance(time.Hour)
	gone()
	w.put("Orders", "p", "later", `"v":{"N":"1"}`)
}

// lost waits for the open gap that an outage has left.
func (r *run) lost() {
	r.t.Helper()
	r.until("what was lost is an open gap", func() bool { return r.table("Orders").Gaps > 0 })
	if ready, _ := r.p.Ready(); ready || r.table("Orders").State != "gap" {
		r.t.Errorf("ready %v, state %q", ready, r.table("Orders").State)
	}
}

// Nothing was read of the shard yet, so its position is still where the pipeline started: neither a
// time nor the trim horizon shows that something is missing.
func TestOutageBeforeTheFirstRecordIsAGap(t *testing.T) {
	for name, start := range map[string]func(time.Time) pipeline.Start{
		"latest":       func(time.Time) pipeline.Start { return pipeline.Start{Latest: true} },
		"a time":       func(now time.Time) pipeline.Start { return pipeline.Start{At: now.Add(-time.Hour)} },
		"trim horizon": func(time.Time) pipeline.Start { return pipeline.Start{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			at := start(w.clock.Now())
			w.opts = func(o *pipeline.Options) { o.Start = at }
			w.createTable("Orders")
			r := w.start("Orders")
			r.settle()
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			w.away(func() {
				w.clock.Advance(25 * time.Hour)
				w.streams.Trim(w.clock.Now().Add(-24 * time.Hour))
			})
			w.start("Orders").lost()
		})
	}
}

// A shard that was idle at the first listing took records later, was closed, and is gone. What was
// trimmed before the pipeline started was never promised and is no open gap; this is one.
func TestLossOfAnIdleShardIsNotTakenForOneBeforeTheStart(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.away(func() {
		w.streams.Rotate("Orders")
		w.clock.Advance(50 * time.Hour)
		w.streams.Trim(w.clock.Now().Add(-24 * time.Hour))
		w.streams.Sweep()
	})
	r = w.start("Orders")
	r.lost()
	r.until("the children's losses are found too", func() bool {
		return r.table("Orders").Gaps >= len(w.streams.OpenShards("Orders"))
	})
	if st := r.table("Orders"); st.Accepted > 0 {
		r.t.Errorf("%d gaps are open, %d have accepted themselves", st.Gaps, st.Accepted)
	}
}
