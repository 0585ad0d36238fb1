package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestGoalIsMetOnlyWithEverythingInBigtable: Rule 10. An obstacle answers at once, but only when
// nothing else is missing.
func TestGoalIsMetOnlyWithEverythingInBigtable(t *testing.T) {
	gaps, letters, held := Loss{ObstacleGaps, 1}, Loss{ObstacleLetters, 3}, Loss{ObstacleHeld, 1}
	lost := func(g checkpoint.Gap) func(*checkpoint.State) {
		g.Sinks = []string{checkpoint.SinkBigtable, "archive"}
		return func(s *checkpoint.State) {
			s.Marks["archive"] = checkpoint.Mark{Seq: 7}
			s.Gaps = append(s.Gaps, g)
		}
	}
	open := func(s *checkpoint.State) { gapped(s); lost(checkpoint.Gap{Since: 6000})(s) }
	done := func() *checkpoint.State { return logOf(10_000, 10_000, 7, 7) }
	waived, healed := map[string]checkpoint.Waiver{}, map[string]checkpoint.Healing{}
	waived[checkpoint.SinkBigtable] = checkpoint.Waiver{By: "me"}
	healed[checkpoint.SinkBigtable] = checkpoint.Healing{At: 1}
	heldArchive := func(s *checkpoint.State) {
		s.Marks["archive"] = checkpoint.Mark{Seq: 6}
		s.Halts = map[string]*checkpoint.Halt{"archive": {Sink: "archive", Held: true}}
	}
	both := Accept{Gaps: true, Letters: true}
	fenced := func(f checkpoint.Fence) *checkpoint.State {
		return with(logOf(10_000, 10_000, 9, 6), func(s *checkpoint.State) { s.Format, s.Fence = checkpoint.Format, &f })
	}
	for _, c := range []struct {
		name    string
		state   *checkpoint.State
		letters int
		accept  Accept
		heals   bool
		want    Answer
	}{
		{"everything", done(), 0, Accept{}, false, Answer{}},
		{"not applied", logOf(10_000, 10_000, 7, 6), 0, Accept{}, false, Answer{Missing: MissingApplied}},
		{"dead letters", done(), 3, Accept{}, false, Answer{Losses: []Loss{letters}}},
		{"dead letters, and more to come", logOf(10_000, 10_000, 7, 6), 3, Accept{}, false,
			Answer{Missing: MissingApplied, Losses: []Loss{letters}}},
		{"dead letters that are accepted", done(), 3, both, false, Answer{}},
		{"an open gap", with(done(), open), 0, Accept{}, false, Answer{Losses: []Loss{gaps}}},
		{"an open gap, and more to come", with(logOf(10_000, 9999, 7, 7), open), 0, Accept{}, false,
			Answer{Missing: MissingRead, Losses: []Loss{gaps}}},
		{"an open gap that is accepted by the caller", with(done(), open), 0, both, false, Answer{}},
		{"an open gap that heals by itself", with(done(), open), 0, Accept{}, true, Answer{Missing: MissingAccept}},
		{"an accepted gap", with(done(), lost(checkpoint.Gap{Since: 6000, Accepted: true})), 0, Accept{}, false,
			Answer{Losses: []Loss{gaps}}},
		{"an accepted gap that heals by itself", with(done(), lost(checkpoint.Gap{Since: 6000, Accepted: true})), 0, Accept{},
			true, Answer{Missing: MissingAccept}},
		{"a gap behind the goal", with(done(), lost(checkpoint.Gap{Since: 20_000, Accepted: true})), 0, Accept{}, false,
			Answer{}},
		{"a gap that is waived", with(done(), lost(checkpoint.Gap{Since: 6000, Accepted: true, Waived: waived})), 0, Accept{},
			false, Answer{}},
		{"a gap that is healed", with(done(), lost(checkpoint.Gap{Since: 6000, Accepted: true, Healed: healed})), 0, Accept{},
			false, Answer{}},
		{"a gap of a table without a target", with(done(), func(s *checkpoint.State) {
			lost(checkpoint.Gap{Since: 6000, Accepted: true})(s)
			delete(s.Marks, checkpoint.SinkBigtable)
		}), 0, Accept{}, false, Answer{Losses: []Loss{gaps}}},
		{"a gap that is being healed", with(done(), func(s *checkpoint.State) {
			lost(checkpoint.Gap{Since: 6000, Accepted: true})(s)
			s.Resync = &checkpoint.PendingResync{ID: "r", Gaps: []string{"g"}}
		}), 0, Accept{}, false, Answer{Missing: MissingResync, Losses: []Loss{gaps}}},
		{"a sink before a refused change", with(logOf(10_000, 10_000, 7, 6), func(s *checkpoint.State) {
			s.Halts = map[string]*checkpoint.Halt{checkpoint.SinkBigtable: {Sink: checkpoint.SinkBigtable, Held: true}}
		}), 0, both, false, Answer{Losses: []Loss{held}}},
		{"the archive held, while Bigtable goes on", with(logOf(10_000, 10_000, 7, 5), heldArchive), 0, both, false,
			Answer{Missing: MissingApplied, Losses: []Loss{held}}},
		{"the archive held, behind Bigtable", with(logOf(10_000, 10_000, 7, 7), heldArchive), 0, both, false,
			Answer{Losses: []Loss{held}}},
		{"the archive held, and Bigtable halted for another reason", with(logOf(10_000, 10_000, 7, 5),
			func(s *checkpoint.State) {
				heldArchive(s)
				s.Halts[checkpoint.SinkBigtable] = &checkpoint.Halt{Sink: checkpoint.SinkBigtable}
			}), 0, both, false, Answer{Missing: MissingApplied, Losses: []Loss{held}}},
		{"no sink has a mark", with(logOf(10_000, 10_000, 7, 7), func(s *checkpoint.State) {
			s.Marks = nil
		}), 0, Accept{}, false, Answer{Missing: MissingApplied}},
		{"the archive held, and a copy", with(logOf(10_000, 10_000, 7, 7), func(s *checkpoint.State) {
			heldArchive(s)
			s.Backfill = "scan"
		}), 0, both, false, Answer{Missing: MissingCopy, Losses: []Loss{held}}},
		{"a sink that is halted for another reason", with(logOf(10_000, 10_000, 7, 6), func(s *checkpoint.State) {
			s.Halts = map[string]*checkpoint.Halt{checkpoint.SinkBigtable: {Sink: checkpoint.SinkBigtable}}
		}), 0, both, false, Answer{Missing: MissingApplied}},
		{"heartbeats and deletions by TTL behind a fence", fenced(checkpoint.Fence{Seq: 7, Last: 6}), 0, both, false,
			Answer{}},
		{"changes behind a fence", fenced(checkpoint.Fence{Seq: 7, Last: 6, Behind: 2, BehindSince: 9999}), 0, both, false,
			Answer{Losses: []Loss{{ObstacleFence, 2}}}},
		{"changes behind a fence and behind the goal",
			fenced(checkpoint.Fence{Seq: 7, Last: 6, Behind: 2, BehindSince: 10_000}), 0, Accept{}, false, Answer{}},
		{"a fence that is not reached", fenced(checkpoint.Fence{Seq: 8, Last: 7}), 0, Accept{}, false,
			Answer{Missing: MissingApplied}},
		{"an archive behind a fence", with(fenced(checkpoint.Fence{Seq: 7, Last: 6}), func(s *checkpoint.State) {
			s.Marks["archive"] = checkpoint.Mark{Seq: 8}
		}), 0, Accept{}, false, Answer{Missing: MissingApplied}},
		{"a copy that has not begun", with(done(), func(s *checkpoint.State) { s.Backfill = "scan" }), 0, Accept{}, false,
			Answer{Missing: MissingCopy}},
		{"a copy that is not complete", with(done(), func(s *checkpoint.State) {
			s.Backfill, s.Copy = "scan", &checkpoint.CopyState{}
		}), 0, Accept{}, false, Answer{Missing: MissingCopy}},
		{"a copy that is complete", with(done(), func(s *checkpoint.State) {
			s.Backfill, s.Copy = "scan", &checkpoint.CopyState{Ended: 90}
		}), 0, Accept{}, false, Answer{}},
		{"a mapping that is accepted", with(done(), func(s *checkpoint.State) { s.Accepting = &checkpoint.Accept{} }), 0,
			Accept{}, false, Answer{Missing: MissingCopy}},
		{"a mapping that is switched before its copy begins", with(done(), func(s *checkpoint.State) {
			s.Switched = &checkpoint.Switch{}
		}), 0, Accept{}, false, Answer{Missing: MissingCopy}},
		{"a recovery that is not complete", with(done(), func(s *checkpoint.State) {
			s.Resync = &checkpoint.PendingResync{Recover: true}
		}), 0, Accept{}, false, Answer{Missing: MissingResync}},
		{"an ordered comparison without gaps", with(done(), func(s *checkpoint.State) {
			s.Resync = &checkpoint.PendingResync{ID: "r"}
		}), 0, Accept{}, false, Answer{}},
	} {
		g := Goal{Through: 10_000, Accept: c.accept, Heals: c.heals}
		got := g.Look(c.state, c.letters)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if nothing := got.Missing == MissingNothing; got.Met() && got.Blocked() || nothing != (got.Met() || got.Blocked()) {
			t.Errorf("%s: met %t, blocked %t", c.name, got.Met(), got.Blocked())
		}
	}
}
