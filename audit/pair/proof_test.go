package pair

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// logState returns the state of a log: its newest listing began at listed, it is read up to read, its
// newest changes are in entry last, and Bigtable's mark is at entry mark.
func logState(listed, read int64, last, mark uint64) *checkpoint.State {
	s := checkpoint.NewState()
	s.Streams = []*checkpoint.Stream{{ARN: "s"}}
	s.Listed, s.LastFrame = change.Millis(listed), last
	s.Shards["a"] = &checkpoint.Shard{Phase: checkpoint.PhaseFinished, LastAlive: change.Millis(read)}
	s.Marks = map[string]checkpoint.Mark{checkpoint.SinkBigtable: {Seq: mark}, "archive": {}}
	return s
}

// TestProofNeedsListingReadingAndMark: Rule 10. The archive may be behind; each table counts.
func TestProofNeedsListingReadingAndMark(t *testing.T) {
	equal := logState(100, 100, 7, 7)
	for _, c := range []struct {
		name  string
		looks []*checkpoint.State // at the first of two tables; only the last look may satisfy
		want  bool
	}{
		{"listed before", []*checkpoint.State{logState(99, 100, 7, 7)}, false},
		{"not read so far", []*checkpoint.State{logState(100, 99, 7, 7)}, false},
		{"not applied", []*checkpoint.State{logState(100, 100, 7, 6)}, false},
		{"applied", []*checkpoint.State{logState(100, 100, 7, 7)}, true},
		{"changes that came after the reading need not be applied",
			[]*checkpoint.State{logState(100, 100, 7, 6), logState(110, 110, 9, 7)}, true},
		{"children that a listing shows lower what was read", []*checkpoint.State{logState(100, 100, 7, 6),
			logState(110, 90, 8, 7), logState(110, 110, 9, 7)}, false},
		{"the stream is not started", []*checkpoint.State{checkpoint.NewState()}, false},
	} {
		p, met := newProof(100, 2, time.Time{}), false
		for _, s := range c.looks {
			met = p.met([]*checkpoint.State{s, equal}, time.Time{})
		}
		if met != c.want {
			t.Errorf("%s: %v", c.name, met)
		}
		if why := p.why(0, c.looks[len(c.looks)-1]); (why == "") != c.want {
			t.Errorf("%s: waits for %q", c.name, why)
		}
	}
}

// beaten is a log out of whose open shards, but for some, heartbeats prove what was read.
func beaten(read int64, assumed int, last, mark uint64) *checkpoint.State {
	s := logState(1000, 1000, last, mark)
	s.Proof.Read, s.Proof.Assumed = change.Millis(read), assumed
	return s
}

// beating is a log whose owner has said for some milliseconds what heartbeats prove.
func beating(s *checkpoint.State, ago change.Millis) *checkpoint.State {
	s.Date = 1_000_000
	s.Proof.Since = s.Date - ago
	return s
}

// TestHeartbeatsProveWhatWasReadAndApplied: Rule 10. Nothing is awaited of a table in which they
// cannot prove anything, and what they prove of one table they do not of another.
func TestHeartbeatsProveWhatWasReadAndApplied(t *testing.T) {
	for _, c := range []struct {
		name    string
		looks   []*checkpoint.State
		proven  bool
		awaited bool
	}{
		{"the owner has not said anything yet", []*checkpoint.State{logState(1000, 1000, 7, 7)}, false, true},
		{"an open shard without", []*checkpoint.State{beating(beaten(100, 1, 7, 7), 20_000)}, false, false},
		{"an open shard without, of a new owner", []*checkpoint.State{beating(beaten(0, 1, 7, 7), 19_999)}, false, true},
		{"proven by a new owner", []*checkpoint.State{beating(beaten(99, 0, 7, 7), 60_000),
			beating(beaten(0, 1, 7, 7), 0), beating(beaten(100, 0, 7, 7), 1000)}, true, false},
		{"written before", []*checkpoint.State{beaten(99, 0, 7, 7)}, false, true},
		{"read, and not applied", []*checkpoint.State{beaten(100, 0, 7, 6)}, false, true},
		{"applied", []*checkpoint.State{beaten(100, 0, 7, 7)}, true, false},
		{"applied while more came", []*checkpoint.State{beaten(100, 0, 7, 6), beaten(110, 0, 9, 7)}, true, false},
		{"and a split after it", []*checkpoint.State{beaten(100, 0, 7, 7), beating(beaten(0, 1, 9, 7), 0)}, true, false},
	} {
		wait := func(table int) time.Duration { return time.Duration(table) * 20 * time.Second } // the second one
		b, more := newHeartbeatProof(100, 2, wait), false
		for _, s := range c.looks {
			more = b.awaited([]*checkpoint.State{logState(1000, 1000, 7, 7), s})
		}
		if b.proven[1] != c.proven || more != c.awaited || b.proven[0] {
			t.Errorf("%s: proven %t, awaited %t", c.name, b.proven, more)
		}
	}
}

// TestProofKnowsWhenNothingMoves: a log that comes closer resets the time after which waiting ends.
func TestProofKnowsWhenNothingMoves(t *testing.T) {
	begin := time.Unix(0, 0)
	p := newProof(100, 1, begin)
	for i, c := range []struct {
		state *checkpoint.State
		moved int
	}{{logState(80, 80, 7, 1), 1}, {logState(80, 80, 7, 1), 1}, {logState(80, 80, 7, 2), 3}, {logState(90, 80, 7, 2), 4},
		{logState(90, 85, 7, 2), 5}, {logState(90, 85, 9, 2), 5}} {
		p.met([]*checkpoint.State{c.state}, begin.Add(time.Duration(i+1)*time.Second))
		if got := int(p.moved.Sub(begin).Seconds()); got != c.moved {
			t.Errorf("look %d: moved after %d s, want %d", i+1, got, c.moved)
		}
	}
}

// TestObstaclesAreNamed: what no waiting overcomes ends the proof with what to do.
func TestObstaclesAreNamed(t *testing.T) {
	for text, change := range map[string]func(*checkpoint.State){
		"is halted: x": func(s *checkpoint.State) { s.Halts = map[string]*checkpoint.Halt{"bigtable": {Reason: "x"}} },
		"is disabled":  func(s *checkpoint.State) { s.Streams[0].Disabled = true },
		"not started":  func(s *checkpoint.State) { s.Streams = nil },
		"before a gap": func(s *checkpoint.State) {
			s.Shards["g"] = &checkpoint.Shard{ID: "g", Stream: s.Streams[0].ARN, Phase: checkpoint.PhaseClosed,
				Loss: checkpoint.Loss{Pending: true}}
		},
	} {
		s := logState(100, 100, 7, 7)
		s.Owner, s.Date = "a", 1
		change(s)
		s.Reindex()
		if err := obstacleOf("Orders", s); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := obstacleOf("Orders", logState(100, 100, 7, 7)); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		change func(*checkpoint.State)
		text   string
	}{
		"copy":    {func(s *checkpoint.State) { s.Copy = &checkpoint.CopyState{} }, "is being copied"},
		"pending": {func(s *checkpoint.State) { s.Backfill = checkpoint.FromScan }, "is being copied"},
		"mapping": {func(s *checkpoint.State) { s.Accepting = &checkpoint.Accept{} }, "is being switched"},
		"resync":  {func(s *checkpoint.State) { s.Resync = &checkpoint.PendingResync{} }, "is being resynced"},
	} {
		s := logState(100, 100, 7, 7)
		c.change(s)
		if err := unfinished("Orders", s); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
