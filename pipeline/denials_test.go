package pipeline_test

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// denials are negative answers of DynamoDB about a living shard. Each begins the answer for a
// number of calls, 0 for all until calm, and returns how many were given.
var denials = map[string]func(r *run, times int) (given func() int){
	"not found by GetRecords":            refusedBy("GetRecords", "ResourceNotFoundException"),
	"not found by GetShardIterator":      refusedBy("GetShardIterator", "ResourceNotFoundException"),
	"trimmed, by GetRecords":             refusedBy("GetRecords", "TrimmedDataAccessException"),
	"trimmed, by GetShardIterator":       refusedBy("GetShardIterator", "TrimmedDataAccessException"),
	"not found by all calls of a stream": refusedBy("", "ResourceNotFoundException"),
	"no iterator": func(r *run, times int) func() int {
		if times == 0 {
			times = -1
		}
		r.streams.Faults().FalseEnds("", times)
		return r.streams.Faults().FalseEnded
	},
}

// refusedBy refuses calls of an operation; "": of all that are about the stream.
func refusedBy(op, code string) func(r *run, times int) func() int {
	ops := []string{op}
	if op == "" {
		ops = []string{"GetRecords", "GetShardIterator", "DescribeStream"}
	}
	return func(r *run, times int) func() int {
		before := r.metric("tailrace_source_errors_total")
		for _, o := range ops {
			if err := r.faults.Inject(fault.Rule{Effect: fault.Error, Operation: o, Code: code, Times: times}); err != nil {
				r.t.Fatal(err)
			}
		}
		if op == "GetShardIterator" { // it is asked for only when there is none
			r.streams.Faults().IteratorTTL(time.Nanosecond)
		}
		return func() int { return int(r.metric("tailrace_source_errors_total") - before) }
	}
}

// TestOneDenialEndsNoShard, Rule 13: one answer that a living shard is gone, trimmed or at its end,
// and the same answer on every call for as long as each shard is asked four times, costs nothing.
// Shards that split meanwhile and afterwards are read, with their children.
func TestOneDenialEndsNoShard(t *testing.T) {
	for name, begin := range denials {
		for what, times := range map[string]int{"once": 1, "every call": 0} {
			t.Run(name+", "+what, func(t *testing.T) {
				if times == 0 {
					long(t, "20 s")
				}
				w := newWorld(t)
				w.createTable("Orders")
				r := w.start("Orders")
				w.changeItems("Orders", 1, 60)
				r.settle()
				given, want := begin(r, times), 1
				if times == 0 {
					want = 16
				}
				w.changeItems("Orders", 2, 60)
				r.until("the answer was given", func() bool { return given() >= want })
				w.streams.Rotate("Orders") // while every call denies
				w.changeItems("Orders", 3, 60)
				r.until("it was given again", func() bool { return times == 1 || given() >= 2*want })
				w.faults.Calm()
				w.streams.Faults().Calm()
				w.changeItems("Orders", 4, 60)
				for _, shard := range w.streams.OpenShards("Orders") {
					if _, err := w.streams.Split(shard, 2); err != nil {
						t.Fatal(err)
					}
				}
				w.changeItems("Orders", 5, 60)
				r.settle()
				r.equal()
				r.readsAll()
			})
		}
	}
}

// TestFalseEndsOfEndedShardsLoseNothing, Rule 13: the end of a shard is listed, and what is left of
// it is hidden by answers that nothing follows, as often as they come.
func TestFalseEndsOfEndedShardsLoseNothing(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 60)
	r.settle()
	for round := uint64(2); round < 4; round++ {
		before := w.streams.Faults().FalseEnded()
		w.streams.Faults().FalseEnds("", -1)
		w.changeItems("Orders", round, 60)
		w.streams.Rotate("Orders")
		r.until("each shard that has ended was asked three times", func() bool {
			return w.streams.Faults().FalseEnded()-before >= 12
		})
		w.streams.Faults().Calm()
		w.changeItems("Orders", 10+round, 60) // where nothing was read, an answer that lasts is believed
		r.settle()
		r.equal()
		r.readsAll()
	}
}

// readsAll checks that nothing counts as lost, and that each open shard is read.
func (r *run) readsAll() {
	r.t.Helper()
	st := r.table("Orders")
	if st.Gaps+st.Accepted != 0 || st.Shards.Unread != 0 || st.Shards.Open != len(r.streams.OpenShards("Orders")) {
		r.t.Errorf("%d gaps, shards %+v, want %d open", st.Gaps+st.Accepted, st.Shards, len(r.streams.OpenShards("Orders")))
	}
	r.until("ready", func() bool { ok, _ := r.p.Ready(); return ok })
}

// TestGoneShardIsAGapOnceAListingLacksIt: what the service denies and no longer lists is lost, and
// so is what its children held longer ago than the retention.
func TestGoneShardIsAGapOnceAListingLacksIt(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.changeItems("Orders", 1, 60)
	r := w.start("Orders")
	r.settle()
	r.kill()
	w.changeItems("Orders", 2, 60)
	w.streams.Rotate("Orders")
	w.clock.Advance(49 * time.Hour)
	w.streams.Sweep()
	r = w.restart("Orders")
	r.until("eight gaps", func() bool { return r.table("Orders").Gaps == 8 })
	if st := r.table("Orders"); st.Shards.Done != 4 || st.Shards.Open != 4 {
		t.Errorf("%+v, want four shards that are gone, and their children", st.Shards)
	}
}
