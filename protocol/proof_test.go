package protocol

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// logOf returns the state of a log whose newest listing began at listed and shows one open shard,
// which is read up to read. Its newest changes are in entry last, and Bigtable has applied it up to
// entry mark.
func logOf(listed, read int64, last, mark uint64) *checkpoint.State {
	s := checkpoint.NewState()
	s.Streams = []*checkpoint.Stream{{ARN: "s"}}
	s.Listed, s.LastFrame = change.Millis(listed), last
	s.Shards["a"] = &checkpoint.Shard{ID: "a", Stream: "s", Phase: checkpoint.PhaseOpen, Watermark: change.Millis(read)}
	s.Marks = map[string]checkpoint.Mark{checkpoint.SinkBigtable: {Seq: mark}}
	s.Reindex()
	return s
}

// with returns a state that is changed.
func with(s *checkpoint.State, change func(*checkpoint.State)) *checkpoint.State {
	change(s)
	s.Reindex()
	return s
}

// gapped puts a second shard before a gap that is not accepted, and a child behind it.
func gapped(s *checkpoint.State) {
	s.Shards["b"] = &checkpoint.Shard{ID: "b", Stream: "s", Phase: checkpoint.PhaseClosed, Watermark: 50, LastAlive: 60,
		Loss: checkpoint.Loss{Pending: true}}
	s.Shards["c"] = &checkpoint.Shard{ID: "c", Stream: "s", Parent: "b", Phase: checkpoint.PhaseWaiting}
}

// TestProofNeedsListingReadingAndMark: Rule 10. Each part alone is not enough, and what was read
// may become unread.
func TestProofNeedsListingReadingAndMark(t *testing.T) {
	type states = []*checkpoint.State
	for _, c := range []struct {
		name   string
		looks  states
		beside bool
		want   Missing // of the last look
	}{
		{"not started", states{checkpoint.NewState()}, false, MissingStream},
		{"listed before", states{logOf(99, 100, 7, 7)}, false, MissingListing},
		{"not read so far", states{logOf(100, 99, 7, 7)}, false, MissingRead},
		{"not applied", states{logOf(100, 100, 7, 6)}, false, MissingApplied},
		{"applied", states{logOf(100, 100, 7, 7)}, false, MissingNothing},
		{"changes that came after the reading need not be applied",
			states{logOf(100, 100, 7, 6), logOf(110, 110, 9, 7)}, false, MissingNothing},
		{"children that a listing shows make it unread, and what came meanwhile counts",
			states{logOf(100, 100, 7, 6), logOf(110, 90, 8, 7), logOf(110, 110, 9, 7)}, false, MissingApplied},
		{"a watermark shows that the mark is far enough", states{with(logOf(100, 100, 9, 7), func(s *checkpoint.State) {
			s.Watermarks = []checkpoint.Watermark{{Seq: 7, Time: 100}}
		})}, false, MissingNothing},
		{"a watermark of an earlier time does not", states{with(logOf(100, 100, 9, 7), func(s *checkpoint.State) {
			s.Watermarks = []checkpoint.Watermark{{Seq: 7, Time: 99}, {Seq: 8, Time: 100}}
		})}, false, MissingApplied},
		{"disabled", states{with(logOf(99, 99, 7, 7), func(s *checkpoint.State) { s.Streams[0].Disabled = true })}, false,
			MissingEnabled},
		{"before a gap", states{with(logOf(100, 100, 7, 7), gapped)}, false, MissingAccept},
		{"all but what is before a gap", states{with(logOf(100, 100, 7, 7), gapped)}, true, MissingNothing},
		{"not even that", states{with(logOf(100, 99, 7, 7), gapped)}, true, MissingRead},
		{"a finished shard that a listing shows open", states{with(logOf(100, 100, 7, 7), func(s *checkpoint.State) {
			s.Shards["d"] = &checkpoint.Shard{ID: "d", Stream: "s", Phase: checkpoint.PhaseFinished, SeenOpen: true,
				Watermark: 100}
		})}, true, MissingReader},
	} {
		p, got := Proof{Through: 100, BesideGaps: c.beside}, Missing("none")
		var last *checkpoint.State
		for _, s := range c.looks {
			got, last = p.Look(s, s.AppliedMark()), s
		}
		if got != c.want {
			t.Errorf("%s: lacks %q, want %q", c.name, got, c.want)
		}
		if why := p.Why(got, last); (why == "") != (got == MissingNothing) || why == string(got) && why != "" {
			t.Errorf("%s: is described as %q", c.name, why)
		}
	}
}

// TestProofByHeartbeats: what heartbeats prove of open shards replaces empty reads, and lasts only
// while each has one.
func TestProofByHeartbeats(t *testing.T) {
	beaten := func(read int64, assumed int, last, mark uint64) *checkpoint.State {
		s := logOf(0, 0, last, mark)
		s.Proof.Read, s.Proof.Assumed = change.Millis(read), assumed
		return s
	}
	p := Proof{Through: 100}
	for i, c := range []struct {
		state *checkpoint.State
		want  Missing
	}{
		{beaten(99, 0, 7, 7), MissingRead},
		{beaten(100, 1, 7, 7), MissingRead},
		{beaten(100, 0, 7, 6), MissingApplied},
		{beaten(0, 1, 8, 7), MissingRead}, // another owner
		{beaten(110, 0, 8, 7), MissingApplied},
		{beaten(110, 0, 9, 8), MissingNothing},
	} {
		if got := p.LookByHeartbeats(c.state, c.state.AppliedMark()); got != c.want {
			t.Errorf("look %d: lacks %q, want %q", i, got, c.want)
		}
	}
}

// TestNoProof: Rule 14. What ends no wait is told before it, in the order in which an operator must
// end it, and each of it keeps a Proof of the present from being complete.
func TestNoProof(t *testing.T) {
	halted := func(s *checkpoint.State) {
		s.Halts = map[string]*checkpoint.Halt{checkpoint.SinkBigtable: {Sink: checkpoint.SinkBigtable}}
	}
	disabled := func(s *checkpoint.State) { s.Streams[0].Disabled = true }
	for _, c := range []struct {
		name    string
		changes []func(*checkpoint.State)
		want    []Missing
	}{
		{"nothing", nil, nil},
		{"what ends by itself", []func(*checkpoint.State){func(s *checkpoint.State) {
			s.Listed, s.Backfill, s.Marks[checkpoint.SinkBigtable] = 10, checkpoint.FromScan, checkpoint.Mark{Seq: 1}
		}}, nil},
		{"a halted archive", []func(*checkpoint.State){func(s *checkpoint.State) {
			s.Halts = map[string]*checkpoint.Halt{"archive": {Sink: "archive"}}
		}}, nil},
		{"a halted sink", []func(*checkpoint.State){halted}, []Missing{MissingSink}},
		{"not started", []func(*checkpoint.State){func(s *checkpoint.State) { s.Streams = nil }}, []Missing{MissingStream}},
		{"disabled", []func(*checkpoint.State){disabled}, []Missing{MissingEnabled}},
		{"before a gap", []func(*checkpoint.State){gapped}, []Missing{MissingAccept}},
		{"all at once", []func(*checkpoint.State){halted, disabled, gapped},
			[]Missing{MissingSink, MissingEnabled, MissingAccept}},
	} {
		s := logOf(100, 100, 7, 7)
		for _, change := range c.changes {
			s = with(s, change)
		}
		got := NoProof(s)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		p := Proof{Through: 200}
		for _, why := range got {
			if p.Why(why, s) == string(why) {
				t.Errorf("%s: no text for %s", c.name, why)
			}
		}
		missing := p.Look(s, s.AppliedMark())
		want := slices.DeleteFunc(got, func(m Missing) bool { return m == MissingSink })
		if len(want) > 0 && missing != want[0] {
			t.Errorf("%s: a proof lacks %s, want %s", c.name, missing, want[0])
		}
	}
}
