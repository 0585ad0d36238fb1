package checkpoint

import (
	"errors"
	"strings"
	"testing"
)

// TestUnfinished: Rule 14. What is still to be done is told apart by what brings it, and each of it
// keeps a fence from being raised.
func TestUnfinished(t *testing.T) {
	accept := &Accept{From: "a", To: "b"}
	for _, c := range []struct {
		what string
		set  func(*State)
		want Work
	}{
		{"nothing", func(*State) {}, Work{}},
		{"the start asked for a copy", func(s *State) { s.Backfill = FromScan }, Work{Copy: CopyDue}},
		{"a copy", func(s *State) { s.Backfill, s.Copy = FromScan, &CopyState{} }, Work{Copy: CopyRuns}},
		{"a paused copy", func(s *State) { s.Copy = &CopyState{Paused: true} }, Work{Copy: CopyRuns}},
		{"a copy that is complete", func(s *State) { s.Backfill, s.Copy = FromScan, &CopyState{Ended: 9} }, Work{}},
		{"a copy that was cancelled: its gap waits for an operator", func(s *State) {
			s.Backfill, s.Copy = FromScan, &CopyState{Canceled: true}
			s.Gaps = []Gap{{Accepted: true, Canceled: true, Sinks: []string{SinkBigtable}}}
		}, Work{}},
		{"a doubt", func(s *State) {
			s.Gaps = []Gap{{Accepted: true, Doubt: DoubtUnconfirmed, Sinks: []string{SinkBigtable}}}
		}, Work{}},
		{"an accepted mapping", func(s *State) { s.Accepting = accept }, Work{Copy: CopySwitch}},
		{"a switched mapping", func(s *State) { s.Switched = &Switch{} }, Work{Copy: CopySwitch}},
		{"a mapping that was switched before the first copy began", func(s *State) {
			s.Backfill, s.Switched = FromScan, &Switch{}
		}, Work{Copy: CopySwitch}},
		{"a mapping accepted while a copy runs", func(s *State) {
			s.Copy, s.Accepting = &CopyState{}, accept
		}, Work{Copy: CopyRuns}},
		{"a recovery", func(s *State) { s.Resync = &PendingResync{Recover: true} }, Work{Resync: ResyncRecovers}},
		{"a recovery that heals gaps, too", func(s *State) {
			s.Resync = &PendingResync{Recover: true, Gaps: []string{"g"}}
		}, Work{Resync: ResyncRecovers}},
		{"gaps are healed", func(s *State) { s.Resync = &PendingResync{Gaps: []string{"g"}} },
			Work{Resync: ResyncHeals}},
		{"an ordered comparison", func(s *State) { s.Resync = &PendingResync{ID: "r"} }, Work{Resync: ResyncCompares}},
		{"a copy and a recovery", func(s *State) {
			s.Copy, s.Resync = &CopyState{}, &PendingResync{Recover: true}
		}, Work{CopyRuns, ResyncRecovers}},
	} {
		s := NewState()
		s.Streams, s.Marks[SinkBigtable] = []*Stream{{ARN: "arn"}}, Mark{Seq: 1}
		c.set(s)
		got := s.Unfinished()
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
		err := s.checkFenceOrder(&FenceOrder{ID: "f"})
		if refused := (*FenceError)(nil); (err != nil) != (c.want != Work{}) || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: a fence: %v", c.what, err)
		}
		if err != nil && strings.Contains(err.Error(), "copy") != (c.want.Copy != CopyNone) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// TestWorkThatBringsWhatIsMissing: a copy that has no entry yet is one that an owner still begins,
// and of the resyncs only a plain comparison is not known to bring anything.
func TestWorkThatBringsWhatIsMissing(t *testing.T) {
	for copied, due := range map[CopyWork]bool{CopyNone: false, CopyDue: true, CopyRuns: false, CopySwitch: true} {
		if copied.Due() != due {
			t.Errorf("copy %q: due is %v", copied, !due)
		}
	}
	for resynced, missing := range map[ResyncWork]bool{
		ResyncNone: false, ResyncRecovers: true, ResyncHeals: true, ResyncCompares: false,
	} {
		if resynced.Missing() != missing {
			t.Errorf("resync %q: missing is %v", resynced, !missing)
		}
	}
}
