package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
)

// applied is a log whose newest listing began at listed and that is read and applied up to read.
func applied(listed, read int64) *checkpoint.State {
	s := checkpoint.NewState()
	s.Streams = []*checkpoint.Stream{{ARN: "s"}}
	s.Listed = change.Millis(listed)
	s.Shards["a"] = &checkpoint.Shard{ID: "a", Stream: "s", Phase: checkpoint.PhaseOpen, Watermark: change.Millis(read)}
	s.Marks[checkpoint.SinkBigtable] = checkpoint.Mark{}
	s.Reindex()
	return s
}

// TestWaitIsBlockedOnlyWhenNoTableMoves: an obstacle of one table ends the wait once the others
// have passed the goal.
func TestWaitIsBlockedOnlyWhenNoTableMoves(t *testing.T) {
	letters := []Reason{{Loss: protocol.Loss{Code: protocol.ObstacleLetters, Count: 2}, Table: "Orders"}}
	for _, c := range []struct {
		name   string
		looks  []TableLog
		accept protocol.Accept
		want   Reached
	}{
		{"both", []TableLog{{State: applied(100, 100)}, {State: applied(100, 100)}}, protocol.Accept{}, Reached{Met: true}},
		{"no log yet", []TableLog{{State: checkpoint.NewState()}, {State: applied(100, 100)}}, protocol.Accept{}, Reached{}},
		{"one lags", []TableLog{{State: applied(100, 100)}, {State: applied(100, 99)}}, protocol.Accept{}, Reached{}},
		{"letters of one while the other lags", []TableLog{{State: applied(100, 100), Letters: 2}, {State: applied(100, 99)}},
			protocol.Accept{}, Reached{Reasons: letters}},
		{"letters of one", []TableLog{{State: applied(100, 100), Letters: 2}, {State: applied(100, 100)}}, protocol.Accept{},
			Reached{Blocked: true, Reasons: letters}},
		{"accepted letters", []TableLog{{State: applied(100, 100), Letters: 2}, {State: applied(100, 100)}},
			protocol.Accept{Letters: true}, Reached{Met: true}},
	} {
		w := NewWait(time.UnixMilli(100), []config.Table{{Source: "Orders"}, {Source: "Users"}}, c.accept)
		got, err := w.Look(t.Context(), c.looks)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		class, _ := failure.Of(got.Err())
		if blocked := class == failure.Different; blocked != c.want.Blocked {
			t.Errorf("%s: %v", c.name, got.Err())
		}
	}
}

// TestEachObstacleIsDescribed: an obstacle without a text would be an error without a remedy.
func TestEachObstacleIsDescribed(t *testing.T) {
	for _, code := range []protocol.Obstacle{
		protocol.ObstacleGaps, protocol.ObstacleLetters, protocol.ObstacleHeld, protocol.ObstacleFence,
	} {
		if d := describe[code]; d.one == "" || d.several == "" || d.hint == "" {
			t.Errorf("%s: %+v", code, d)
		}
	}
}

// Rule 10: a host of DynamoDB whose clock is ahead dates a change behind the goal that was made
// before it.
func TestLetterOfAHostThatIsAheadCounts(t *testing.T) {
	const goal = change.Millis(1_700_000_000_000)
	for created, want := range map[change.Millis]bool{
		0: true, goal - 1: true, goal: true, goal + change.CreatedLate - 1: true, goal + change.CreatedLate: false,
	} {
		if got := mayBeBefore(created, goal); got != want {
			t.Errorf("created %d ms behind the goal: %t, want %t", created-goal, got, want)
		}
	}
}
