package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/change"
)

// lostWhole is a gap that ends a shard.
func lostWhole(s *State, id string) *Gap {
	return &Gap{
		Feed: change.Feed{Stream: "arn", Shard: id}, From: s.Shards[id].Pos, Since: s.Shards[id].Watermark, Until: s.Date,
		Found: s.Date, Reason: "gone", Ends: true,
	}
}

func wantUnread(t *testing.T, s *State, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, s.UnreadOpenShards(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("open shards that are not read: %s", d)
	}
}

// Rule 13: a gap that ended a living shard is wrong. The first listing that shows the shard makes
// that known, and once listings go on showing it, it is read behind its last position.
func TestShardThatAGapEndedIsReadOnWhereAListingShowsIt(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, frame(page(w.s, "a", 3, false)))
	pos, clock := w.s.Shards["a"].Pos, w.s.Shards["a"].Clock
	begun := w.s.Date - 1 // a listing that began before the gap was found
	w.must(t, lostWhole(w.s, "a"))
	w.must(t, &Graph{Stream: "arn", Date: begun, Complete: true, Shards: seen("a", "b")})
	wantUnread(t, w.s)
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Complete: true, Shards: seen("a", "b")})
	wantUnread(t, w.s, "a")
	later := w.s.Shards["a"].FinishedAt + childListingDelay // of a listing that leaves the shard out: hosts differ
	for _, listed := range []change.Millis{w.s.Date, later} {
		w.must(t, &Beat{Date: listed + 1000, Listed: listed, Watermark: listed})
		if read := w.s.ReadWatermark(); read > w.s.Shards["a"].Watermark {
			t.Errorf("read through %d, and %s has been read up to %d", read, "a", w.s.Shards["a"].Watermark)
		}
	}
	if sh := w.s.Shards["a"]; w.s.Readable(sh) {
		t.Fatalf("read on before its end and its children must be listed: %s", sh)
	}
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date + childListingDelay, Complete: true, Shards: seen("a", "b")})
	sh := w.s.Shards["a"]
	if wantUnread(t, w.s); !w.s.Readable(sh) || sh.Pos != pos || sh.Clock != clock {
		t.Fatalf("%s, clock %d; want it read on after %v, clock %d", sh, sh.Clock, pos, clock)
	}
	w.must(t, frame(page(w.s, "a", 2, false)))
	if w.s.OpenGaps() != 1 {
		t.Error("the gap is forgotten")
	}
}

// What shows that the shard is gone takes the doubt away. What shows that it has ended says that
// the gap was wrong, or that the shard took writes behind the gap: what is left of it is read,
// before its children.
func TestShardThatAGapEndedIsReadToTheEndThatAListingShows(t *testing.T) {
	for name, shards := range map[string][]ShardSeen{
		"its end": append(ended("a"), seen("b")...), "a child": seen("a", "b", "c<a"), "nothing of it": seen("b"),
	} {
		t.Run(name, func(t *testing.T) {
			w := owned(t, seen("a", "b")...)
			w.must(t, lostWhole(w.s, "a"))
			w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Complete: true, Shards: seen("a", "b")})
			wantUnread(t, w.s, "a")
			w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 1000, Complete: true, Shards: shards})
			sh := w.s.Shards["a"]
			if name == "nothing of it" { // hosts of the service differ
				for i := range change.Millis(2) { // the second listing confirms the first
					wantUnread(t, w.s, "a")
					w.must(t, &Graph{
						Stream: "arn", Date: sh.FinishedAt + (1+i)*childListingDelay, Complete: true, Delta: true, Absent: []string{"a"},
					})
				}
			}
			wantUnread(t, w.s)
			if name == "nothing of it" {
				if sh.Phase != PhaseFinished {
					t.Errorf("read on: %s", phases(w.s))
				}
				return
			}
			if sh.Phase != PhaseClosed || w.s.ReadWatermark() > sh.Watermark {
				t.Fatalf("read through %d: %s", w.s.ReadWatermark(), phases(w.s))
			}
			if c := w.s.Shards["c"]; c != nil && w.s.Readable(c) {
				t.Errorf("a child is read before it: %s", phases(w.s))
			}
			w.must(t, lostWhole(w.s, "a"))
			w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 2*childListingDelay, Complete: true, Shards: seen("a", "b")})
			if wantUnread(t, w.s); sh.Phase != PhaseFinished || w.s.OpenGaps() != 2 {
				t.Errorf("%d gaps, and an old listing opened it again: %s", w.s.OpenGaps(), phases(w.s))
			}
		})
	}
}

// Rule 8: a shard that a listing has shown to live, behind a gap that ended it, took writes until
// it was trimmed, a day later or more. They are lost in a gap, and not in silence.
func TestShardThatLivedBehindItsGapIsReadOnWhereItIsGone(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, lostWhole(w.s, "a"))
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Complete: true, Shards: seen("a", "b")})
	sh := w.s.Shards["a"]
	w.must(t, &Graph{Stream: "arn", Date: sh.FinishedAt + retention, Complete: true, Delta: true, Absent: []string{"a"}})
	if sh.Phase != PhaseClosed || w.s.ReadWatermark() > sh.Watermark {
		t.Fatalf("read through %d: %s", w.s.ReadWatermark(), phases(w.s))
	}
	w.must(t, lostWhole(w.s, "a"))
	if w.s.OpenGaps() != 2 || sh.Phase != PhaseFinished {
		t.Errorf("%d gaps: %s", w.s.OpenGaps(), phases(w.s))
	}
}

// Rule 13: one listing that lacks a shard which another one has shown to live does not end the
// doubt, although the process then ends, and begins again a day later when the shard is gone.
func TestOneAbsenceLeavesTheDoubtAboutAShard(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, lostWhole(w.s, "a"))
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Complete: true, Shards: seen("a", "b")})
	sh := w.s.Shards["a"]
	first := sh.FinishedAt + 2*childListingDelay
	for _, began := range []change.Millis{first, first + childListingDelay - 1} {
		w.must(t, &Graph{Stream: "arn", Date: began, Complete: true, Shards: seen("b")})
		wantUnread(t, w.s, "a")
	}
	if w.s.MarksAbsent(sh, first+childListingDelay-1) || !w.s.MarksAbsent(sh, first+childListingDelay) {
		t.Error("a listing that begins a minute after the first absence confirms it, and none before")
	}
	w.must(t, &Graph{Stream: "arn", Date: sh.FinishedAt + retention, Complete: true, Shards: seen("b")})
	if sh.Phase != PhaseClosed || w.s.ReadWatermark() > sh.Watermark {
		t.Fatalf("read through %d: %s", w.s.ReadWatermark(), phases(w.s))
	}
}

// What a shard of an earlier stream took behind its gap is in the gap before the next stream: it is
// not read once that stream has begun.
func TestShardOfAnEarlierStreamIsNotReadOn(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, lostWhole(w.s, "a"))
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Complete: true, Shards: seen("a", "b")})
	w.must(t, lostWhole(w.s, "b"))
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Disabled: true})
	sh := w.s.Shards["a"]
	if !sh.SeenOpen || !w.s.Drained("arn") {
		t.Fatalf("seen open: %v, %s", sh.SeenOpen, phases(w.s))
	}
	w.must(t, &Start{Stream: "next", Date: w.s.Date + 1, Floor: w.s.HighestVersion(), Shards: seen("c")})
	w.must(t, &Graph{Stream: "next", Date: sh.FinishedAt + retention, Complete: true, Shards: seen("c")})
	if sh.Phase != PhaseFinished || sh.SeenOpen {
		t.Errorf("seen open: %v, %s", sh.SeenOpen, phases(w.s))
	}
}

// A shard whose end was listed before it was read to it stays finished, whatever an inconsistent
// listing shows.
func TestShardThatEndedAsListedStaysFinished(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Shards: ended("a")})
	w.end(t, "a")
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 2*childListingDelay, Complete: true, Shards: seen("a", "b")})
	if wantUnread(t, w.s); w.s.Shards["a"].Phase != PhaseFinished {
		t.Fatal(phases(w.s))
	}
}

// A shard that has a child has ended, also where the listing that showed the child left the shard
// out and no listing has shown both.
func TestShardWithAChildIsNotReadOn(t *testing.T) {
	w := owned(t, seen("b", "c<a")...)
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Complete: true, Delta: true, Shards: seen("a")})
	w.must(t, lostWhole(w.s, "a"))
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 2*childListingDelay, Complete: true, Delta: true, Shards: seen("a")})
	if wantUnread(t, w.s); w.s.Shards["a"].Phase != PhaseFinished {
		t.Fatal(phases(w.s))
	}
}

// Rule 10: a shard that stands before a gap is not read, and it lives.
func TestOpenShardBeforeAGapIsNotRead(t *testing.T) {
	w := owned(t, append(seen("a"), ended("b")...)...)
	for _, id := range []string{"a", "b"} {
		g := lostWhole(w.s, id)
		g.Ends = false
		w.must(t, g)
	}
	wantUnread(t, w.s, "a")
	w.must(t, &Control{Resume: true})
	wantUnread(t, w.s)
}

func TestSnapshotsHoldThatAnEndedShardWasSeenOpen(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, lostWhole(w.s, "a"))
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Complete: true, Shards: seen("a", "b")})
	b, err := encodeState(w.s)
	if err != nil {
		t.Fatal(err)
	}
	s, err := decodeState(b)
	if err != nil {
		t.Fatal(err)
	}
	wantUnread(t, w.s, "a")
	wantUnread(t, s, "a")
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date + childListingDelay, Complete: true, Shards: seen("a", "b")})
	if !w.s.Readable(w.s.Shards["a"]) {
		t.Error("it is not read on")
	}
}

// A listing that repeats what the log holds is not stored again.
func TestListingIsStoredWhereItShowsAnEndedShard(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, lostWhole(w.s, "a"))
	at := w.s.Date
	for _, step := range []struct {
		date   change.Millis
		shards []ShardSeen
		stored int
	}{
		{at - 1, seen("a", "b"), 0},
		{at, seen("a", "b"), 1},
		{at + 1000, seen("a", "b"), 0},
		{at + childListingDelay, seen("a", "b"), 1},
		{at + childListingDelay + 1000, seen("a", "b"), 0},
	} {
		g := &Graph{Stream: "arn", Date: step.date, Complete: true, Shards: step.shards}
		parts := DiffListing(w.s, g, ListingPartBytes)
		if len(parts) != step.stored {
			t.Errorf("%d ms after the gap: %d entries, want %d", step.date-at, len(parts), step.stored)
		}
		for _, p := range parts {
			w.must(t, p)
		}
	}
	if !w.s.Readable(w.s.Shards["a"]) {
		t.Error(phases(w.s))
	}
}
