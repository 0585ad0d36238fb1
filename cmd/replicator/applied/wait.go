// Package applied decides when everything that was written before a moment is in Bigtable, by looking at the tables' logs
// again and again.
package applied

import (
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// Seen is what one table's log said.
type Seen struct {
	Log   *queue.Log // nil: there is none yet
	State *checkpoint.State
}

// Wait decides when everything before goal is applied.
//
// Rule 10: each open shard of a complete listing begun after the call must have shown that it holds nothing older. A
// listing may bring shards that were unknown, and what was read before it came says nothing about them. So where a
// shard is new, what counts is what was applied up to the moment at which that listing was in the log.
type Wait struct {
	goal   int64 // unix ms, service clock; not before the first look
	tables []table
	looks  int
}

type table struct {
	before map[string]bool // shards in the log at the first look
	goal   int64           // unix ms; 0 until the listing is in the log
}

// New waits for what was written before goal, a time of the service, in so many tables.
func New(goal time.Time, tables int) *Wait {
	return &Wait{goal: goal.UnixMilli(), tables: make([]table, tables)}
}

// Met looks once more, at the logs of all tables in always the same order.
func (w *Wait) Met(all []Seen) bool {
	met := true
	for i, s := range all {
		met = w.tables[i].met(w.goal, s) && met
	}
	return met
}

func (t *table) met(goal int64, s Seen) bool {
	if t.before == nil {
		t.before = map[string]bool{}
		for id := range s.State.Shards {
			t.before[id] = true
		}
	}
	if s.Log == nil || s.State.Listed < goal {
		return false
	}
	if t.goal == 0 {
		t.goal = goal
		for id := range s.State.Shards {
			if !t.before[id] {
				t.goal = max(goal, s.State.Date)
			}
		}
	}
	return s.State.AppliedWatermark() >= t.goal
}

// Nudge asks the owners for a listing and a beat, about once a second.
func (w *Wait) Nudge(all []Seen) {
	w.looks++
	if w.looks%4 != 1 {
		return
	}
	for _, s := range all {
		if s.Log != nil {
			_ = s.Log.RequestBeat() // asks for a listing now; without it the next one comes on its timer
		}
	}
}
