package pipeline_test

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// beats gives Orders heartbeats; every 0 writes none.
func (w *world) beats(every time.Duration) {
	keys := heartbeat.Keys{Prefix: "_tr#"}
	w.sopts = func(o *source.Options) { o.Heartbeats = map[string]heartbeat.Keys{"Orders": keys} }
	w.opts = func(o *pipeline.Options) { o.Tables[0].Heartbeat = pipeline.Heartbeat{Keys: keys, Every: every} }
}

// proven waits until heartbeats prove that everything written before now is applied, and returns
// the status.
func (r *run) proven(why string) pipeline.TableStatus {
	r.t.Helper()
	now := r.clock.Now()
	var st pipeline.TableStatus
	r.until(why, func() bool {
		r.clock.Advance(50 * time.Millisecond)
		st = r.table("Orders")
		return st.Proof == status.Proven && st.ProvenThrough.After(now)
	})
	if st.Assumed != 0 || st.ProvenThrough.After(r.clock.Now()) {
		r.t.Errorf("%s: %+v", why, st)
	}
	return st
}

// TestHeartbeatsProveThatIdleShardsAreIdle: of each open shard, again after splits and by another
// owner. They are in no row, letter or count; items of the user under their prefix are copied and
// replicated, and none is overwritten.
func TestHeartbeatsProveThatIdleShardsAreIdle(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.changeItems("Orders", 1, 30)
	w.put("Orders", "_tr#0", "of the user", `"x":{"N":"1"}`)
	w.put("Orders", "_tr#1", "heartbeat", `"x":{"N":"2"}`) // where a heartbeat would be
	w.backfill = pipeline.Backfill{From: "scan"}
	w.beats(50 * time.Millisecond)
	r := w.start("Orders")
	r.settle()
	idle := r.proven("each of the first shards is proven")
	for _, shard := range w.streams.OpenShards("Orders")[:2] {
		if _, err := w.streams.Split(shard, 2); err != nil {
			t.Fatal(err)
		}
	}
	after := r.proven("each child is proven")
	if after.Shards.Open != idle.Shards.Open+2 {
		t.Errorf("%d open shards after %d", after.Shards.Open, idle.Shards.Open)
	}
	if after.Changes != idle.Changes || after.DeadLetters != 0 {
		t.Errorf("heartbeats are counted: %+v after %+v", after, idle)
	}
	r.equal()
	w.put("Orders", "_tr#0", "of the user", `"x":{"N":"3"}`)
	r.settle()
	r.equal()
	if got := r.stored("Orders"); len(got["_tr%230#of the user"]) != 1 || len(got["_tr%231#heartbeat"]) != 1 {
		t.Errorf("the items of the user: %v", got)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = w.start("Orders")
	r.proven("another owner proves it anew")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.beats(0) // opted out
	r = w.start("Orders")
	w.changeItems("Orders", 2, 30)
	r.settle()
	r.equal()
	if st := r.table("Orders"); st.Proof != status.Assumed || st.Assumed != st.Shards.Open {
		t.Errorf("nothing proves it any more: %+v", st)
	}
}
