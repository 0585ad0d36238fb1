package observe

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// state is a log whose newest listing began at listed, and which is applied through a time.
func state(listed, through int64, shards ...string) *checkpoint.State {
	s := checkpoint.NewState()
	s.Listed, s.Date = change.Millis(listed), change.Millis(listed)
	s.Marks["bigtable"] = checkpoint.Mark{}
	s.Watermarks = []checkpoint.Watermark{{Time: change.Millis(through)}}
	for _, id := range shards {
		s.Shards[id] = &checkpoint.Shard{}
	}
	return s
}

// TestAppliedNeedsAListingBegunAfterTheCall: Rule 10. Shards that an older listing did not know may hold anything.
func TestAppliedNeedsAListingBegunAfterTheCall(t *testing.T) {
	log := &queue.Log{}
	with := func(change func(*checkpoint.State)) *checkpoint.State {
		s := state(100, 100, "a")
		change(s)
		return s
	}
	for _, c := range []struct {
		name  string
		looks []TableLog // only the last one may satisfy
		want  bool
	}{
		{"no log yet", []TableLog{{State: state(100, 100)}}, false},
		{"listed before the call", []TableLog{{log, state(99, 200, "a")}}, false},
		{"not applied so far", []TableLog{{log, state(100, 99, "a")}}, false},
		{"listed and applied", []TableLog{{log, state(100, 100, "a")}}, true},
		{"a shard that the first look did not know",
			[]TableLog{{log, state(90, 90, "a")}, {log, state(150, 120, "a", "b")}}, false},
		{"and that is applied past its listing",
			[]TableLog{{log, state(90, 90, "a")}, {log, state(150, 150, "a", "b")}}, true},
		{"a backfill that has not begun", []TableLog{{log, with(func(s *checkpoint.State) { s.Backfill = "scan" })}}, false},
		{"a copy that is not complete", []TableLog{{log, with(func(s *checkpoint.State) {
			s.Backfill, s.Copy = "scan", &checkpoint.CopyState{}
		})}}, false},
		{"a copy that is complete", []TableLog{{log, with(func(s *checkpoint.State) {
			s.Backfill, s.Copy = "scan", &checkpoint.CopyState{Ended: 90}
		})}}, true},
		{"a recovery that is not complete", []TableLog{{log, with(func(s *checkpoint.State) {
			s.Resync = &checkpoint.PendingResync{Recover: true}
		})}}, false},
	} {
		w, met := NewWait(time.UnixMilli(100), 1), false
		for _, look := range c.looks {
			met = w.Met([]TableLog{look})
		}
		if met != c.want {
			t.Errorf("%s: %v", c.name, met)
		}
	}
}
