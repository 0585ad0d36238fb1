package protocol

import (
	"testing"
	"time"
)

// TestOneAnswerDoesNotEndAStream: every pair of answers, in either order and overlapping.
func TestOneAnswerDoesNotEndAStream(t *testing.T) {
	begin := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	answer := func(by StreamCall, shows StreamShown, at time.Duration) StreamAnswer {
		return StreamAnswer{By: by, Shows: shows, Asked: begin.Add(at), Answered: begin.Add(at + time.Second)}
	}
	type pair [2]StreamShown // of the stream, of the table
	proven := map[pair]bool{
		{StreamOff, StreamOff}: true, {StreamOff, StreamReplaced}: true, {StreamOff, StreamUnknown}: true,
		{StreamUnknown, StreamOff}: true, {StreamUnknown, StreamReplaced}: true,
		{StreamReplaced, StreamOff}: true, {StreamReplaced, StreamReplaced}: true, {StreamReplaced, StreamUnknown}: true,
	}
	for stream := StreamUnclear; stream <= StreamUnknown; stream++ {
		for table := StreamUnclear; table <= StreamUnknown; table++ {
			s, d := answer(DescribesStream, stream, 0), answer(DescribesTable, table, time.Second)
			if got, want := StreamEnded(s, d), proven[pair{stream, table}]; got != want {
				t.Errorf("stream %d, then table %d: %v", stream, table, got)
			}
			if StreamEnded(d, s) {
				t.Errorf("table %d, then stream %d: the second was asked before the first", table, stream)
			}
			if early := answer(DescribesTable, table, time.Second-1); StreamEnded(s, early) {
				t.Errorf("stream %d, then table %d: it was asked before the first was answered", stream, table)
			}
			d, s = answer(DescribesTable, table, 0), answer(DescribesStream, stream, time.Minute)
			if got, want := StreamEnded(d, s), proven[pair{stream, table}]; got != want {
				t.Errorf("table %d, then stream %d: %v", table, stream, got)
			}
			if StreamEnded(s, answer(DescribesStream, stream, 2*time.Minute)) {
				t.Errorf("%d: the same call twice", stream)
			}
		}
	}
}

// TestNextStreamFollowsWhatIsApplied: Rule 5: until the old stream is known to have ended, is read to
// its end and applied, the next one does not begin.
func TestNextStreamFollowsWhatIsApplied(t *testing.T) {
	for _, c := range []struct {
		shows             StreamShown
		disabled, applied bool
		want              StreamStep
	}{
		{StreamTakes, false, false, StreamStays}, {StreamOff, true, true, StreamStays},
		{StreamUnknown, true, true, StreamStays}, {StreamUnclear, true, true, StreamStays},
		{StreamReplaced, false, false, StreamRetires}, {StreamReplaced, false, true, StreamRetires},
		{StreamReplaced, true, false, StreamDrains}, {StreamReplaced, true, true, StreamFollows},
	} {
		if got := NextStream(c.shows, c.disabled, c.applied); got != c.want {
			t.Errorf("%+v: step %d", c, got)
		}
	}
	gap, start := NextStart("old", "new", 1000, 5000, 77)
	if gap.Feed.Stream != "old" || gap.Since != 1000 || gap.Until != 5000 || !gap.Ends {
		t.Errorf("gap %+v", gap)
	}
	if start.Stream != "new" || start.Date != 5000 || start.At != 0 || start.Floor != 77 {
		t.Errorf("start %+v", start)
	}
}
