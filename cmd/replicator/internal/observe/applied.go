package observe

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// TableLog is the log of one table and its state.
type TableLog struct {
	Log   *queue.Log // nil: there is none yet
	State *checkpoint.State
}

// requestEvery is how many looks pass between two requests: about a second, at Period.
const requestEvery = 4

// Wait decides when everything that was written before a moment, the goal, is applied.
//
// Rule 10: each open shard of a complete listing begun after the call must have shown that it holds nothing older. A
// listing may bring shards that were unknown before, and what was read before the listing proves nothing about them.
// So where a shard is new, the watermark has to pass the moment at which that listing was in the log.
//
// What a copy, or the resync of a recovery, has not reached yet was written before any goal as well.
type Wait struct {
	goal   change.Millis // service time, at or after the first look
	tables []tableGoal
	looks  int
}

// tableGoal is what a watermark has to pass in one table.
type tableGoal struct {
	known map[string]bool // shards in the log at the first look; nil before it
	goal  change.Millis   // 0 until the listing is in the log
}

// NewWait returns a Wait for what was written before goal, a time of the service, in a number of tables.
func NewWait(goal time.Time, tables int) *Wait {
	return &Wait{goal: change.Millis(goal.UnixMilli()), tables: make([]tableGoal, tables)}
}

// Met reports whether every table has passed the goal, given the logs of all tables in always the same order.
func (w *Wait) Met(all []TableLog) bool {
	met := true
	for i, s := range all {
		met = w.tables[i].met(w.goal, s) && met
	}
	return met
}

// met reports whether the table has passed its goal. The first call records the shards that are known; the first call
// after the listing sets the table's goal.
func (t *tableGoal) met(goal change.Millis, s TableLog) bool {
	if t.known == nil {
		t.known = map[string]bool{}
		for id := range s.State.Shards {
			t.known[id] = true
		}
	}
	if s.Log == nil || s.State.Listed < goal || copying(s.State) {
		return false
	}
	if t.goal == 0 {
		t.goal = goal
		for id := range s.State.Shards {
			if !t.known[id] {
				t.goal = max(goal, s.State.Date)
			}
		}
	}
	return s.State.AppliedWatermark() >= t.goal
}

// copying reports whether items that are older than the stream are still missing: they were written before any goal.
func copying(s *checkpoint.State) bool {
	return s.CopyPending() || s.CopyRunning() != nil || s.Resync != nil && s.Resync.Recover
}

// RequestProgress asks the owners of the logs for a listing and a beat, at every fourth call.
func (w *Wait) RequestProgress(all []TableLog) {
	w.looks++
	if w.looks%requestEvery != 1 {
		return
	}
	for _, s := range all {
		if s.Log != nil {
			_ = s.Log.RequestBeat() // if this fails, the next listing comes on its timer
		}
	}
}
