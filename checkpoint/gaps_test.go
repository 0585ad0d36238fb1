package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

func marksOf(sinks ...string) *Marks {
	m := &Marks{Sinks: map[string]Mark{}}
	for _, s := range sinks {
		m.Sinks[s] = Mark{Seq: 1}
	}
	return m
}

// gapped is a log with an open gap.
func gapped(t *testing.T) *writer {
	t.Helper()
	w, err := claim(t, new(memLog), NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Start{Stream: "arn", Date: 30 * hour, Shards: seen("a", "b")}, marksOf("archive", "bigtable"),
		&Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Since: 10 * hour, Until: 20 * hour, Found: 30 * hour})
	return w
}

// Rule 8: reading on behind a gap brings back nothing of what it lost.
func TestAcceptedGapDiffersUntilItIsWaivedForEachSink(t *testing.T) {
	w := gapped(t)
	const since = 10*hour - change.CreatedEarly // a host with another clock may have dated what it lost
	id := w.s.Gaps[0].ID()
	waive := func(gap, sink string) *Control { return &Control{Waive: &Waive{Gap: gap, Sink: sink}, By: "me", At: 7} }
	for i, step := range []struct {
		c     *Control
		since change.Millis
		left  []string
	}{
		{&Control{}, since, []string{"archive", "bigtable"}},
		{waive(id, "bigtable"), since, []string{"archive", "bigtable"}}, // not while its shard stands before it
		{&Control{Resume: true}, since, []string{"archive", "bigtable"}},
		{waive("another", "bigtable"), since, []string{"archive", "bigtable"}},
		{waive(id, "another"), since, []string{"archive", "bigtable"}},
		{waive(id, "bigtable"), since, []string{"archive"}},
		{waive(id, "bigtable"), since, []string{"archive"}},
		{&Control{Resume: true}, since, []string{"archive"}},
		{waive(id, "archive"), 0, nil},
	} {
		w.must(t, step.c)
		g := &w.s.Gaps[0]
		if d := cmp.Diff(step.left, w.s.DifferingSinks(g)); d != "" || w.s.DiffersSince() != step.since || g.ID() != id {
			t.Fatalf("step %d: since %d, ID %s: %s", i, w.s.DiffersSince(), g.ID(), d)
		}
	}
	if d := cmp.Diff(map[string]Waiver{"archive": {By: "me", At: 7}, "bigtable": {By: "me", At: 7}},
		w.s.Gaps[0].Waived); d != "" {
		t.Error(d)
	}
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	sameState(t, "restored", w.s, w.l.restored(t))
}

func TestSinkThatBeganLaterOrWasRetiredDoesNotDiffer(t *testing.T) {
	w := gapped(t)
	w.must(t, marksOf("later"), &Marks{Retired: []string{"archive"}})
	if d := cmp.Diff([]string{"bigtable"}, w.s.DifferingSinks(&w.s.Gaps[0])); d != "" {
		t.Fatal(d)
	}
	w.must(t, marksOf("archive"))
	if d := cmp.Diff([]string{"archive", "bigtable"}, w.s.DifferingSinks(&w.s.Gaps[0])); d != "" {
		t.Fatalf("back again, its files still lack the gap: %s", d)
	}
}

// A gap that a listing shows, and no reader, is kept in the same way.
func TestSinkThatBeganAfterAShardWasGoneDoesNotDiffer(t *testing.T) {
	w := owned(t, seen("a", "b<a")...)
	w.must(t, marksOf("bigtable"), &Graph{Stream: "arn", Date: w.s.Date + 30*hour, Complete: true, Shards: seen("b<a"),
		Gone: []string{"a"}},
		marksOf("later"))
	if len(w.s.Gaps) != 1 {
		t.Fatalf("%d gaps", len(w.s.Gaps))
	}
	if d := cmp.Diff([]string{"bigtable"}, w.s.DifferingSinks(&w.s.Gaps[0])); d != "" {
		t.Error(d)
	}
}

func TestWhatWasTrimmedBeforeTheStartIsNoDifference(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, marksOf("bigtable"), &Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Ends: true, Accepted: true,
		Reason: ReasonBeforeStart})
	if w.s.DiffersSince() != 0 {
		t.Errorf("differs since %d", w.s.DiffersSince())
	}
}

func TestGapOfAShardNeverReadBeginsWhereItsStreamDid(t *testing.T) {
	for _, at := range []change.Millis{0, 29 * hour} {
		w, err := claim(t, new(memLog), NewState(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		w.must(t, &Start{Stream: "arn", Date: 30 * hour, At: at, Shards: seen("a")}, marksOf("bigtable"),
			&Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Found: 60 * hour})
		want := at
		if at == 0 {
			want = 30*hour - retention
		}
		if got := w.s.DiffersSince(); got != want {
			t.Errorf("start at %d: differs since %d, want %d", at, got, want)
		}
	}
}

// An owner that stores the gap between two streams, and dies before the start of the next one, may
// be followed a day later: what was trimmed of the next stream meanwhile belongs to the gap as
// well.
func TestGapBetweenStreamsGoesOnWhileNoneIsStarted(t *testing.T) {
	const day = retention
	s := NewState()
	gap := func(since, until change.Millis) *Gap {
		return &Gap{Feed: change.Feed{Stream: "old"}, Since: since, Until: until, Ends: true}
	}
	first := gap(1000, 2000)
	if !s.LostBetween(first) {
		t.Fatal("the first gap is not stored")
	}
	s.addGap(*first)
	if s.LostBetween(gap(1000, 2000+day-1)) {
		t.Error("a second gap, although nothing was trimmed")
	}
	later := gap(1000, 2000+day)
	if !s.LostBetween(later) || later.Since != 2000 {
		t.Errorf("a day later: %+v", later)
	}
	if other := gap(1000, 2000); !s.LostBetween(&Gap{Feed: change.Feed{Stream: "other"}, Since: other.Since}) {
		t.Error("the gap of another stream is not stored")
	}
}

// TestGapsToHeal: Rule 14. What nothing heals yet is to be healed, once for each gap; the end of
// the latest gap counts whether or not it is healed.
func TestGapsToHeal(t *testing.T) {
	w := gapped(t)
	a := w.s.Gaps[0].ID()
	w.must(t, &Gap{Feed: change.Feed{Stream: "arn", Shard: "b"}, Since: 25 * hour, Found: 31 * hour})
	b := w.s.Gaps[1].ID()
	heal := func(id string, gaps ...string) *Control {
		return &Control{Resync: &ResyncOrder{ID: id, Gaps: gaps}, At: 32 * hour}
	}
	healed := func(id string, gaps ...string) *Healed {
		return &Healed{ID: id, Gaps: gaps, Sinks: map[string]string{SinkBigtable: ""}, Date: 40 * hour}
	}
	before := &Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Until: 90 * hour, Found: 90 * hour, Ends: true,
		Accepted: true, Reason: ReasonBeforeStart}
	for i, step := range []struct {
		body         any
		differ, toDo []string
		until        change.Millis
		a, b         GapState
	}{
		{&Control{}, []string{a, b}, []string{a, b}, 25 * hour, GapOpen, GapOpen}, // the second one is open-ended
		// An accepted gap ends at the newest time, at most.
		{heal("r1", a), []string{a, b}, []string{b}, 31 * hour, GapHealing, GapOpen},
		{&Control{Resume: true}, []string{a, b}, []string{b}, 31 * hour, GapHealing, GapAccepted},
		{heal("r2", b), []string{a, b}, nil, 31 * hour, GapHealing, GapHealing},
		{healed("r2", a), []string{b}, nil, 31 * hour, GapHealed, GapHealing},
		{healed("r2", b), nil, nil, 31 * hour, GapHealed, GapHealed},
		{before, nil, nil, 31 * hour, GapHealed, GapHealed},
	} {
		w.must(t, step.body)
		ids := func(gaps []*Gap) (ids []string) {
			for _, g := range gaps {
				ids = append(ids, g.ID())
			}
			return ids
		}
		if d := cmp.Diff(step.differ, ids(w.s.DifferingGaps())); d != "" {
			t.Errorf("step %d: differ: %s", i, d)
		}
		if d := cmp.Diff(step.toDo, ids(w.s.GapsToHeal())); d != "" {
			t.Errorf("step %d: to heal: %s", i, d)
		}
		if x, y := w.s.GapState(&w.s.Gaps[0]), w.s.GapState(&w.s.Gaps[1]); x != step.a || y != step.b {
			t.Errorf("step %d: %s, %s, want %s, %s", i, x, y, step.a, step.b)
		}
		if got := w.s.GapsUntil(); got != step.until {
			t.Errorf("step %d: gaps until %d, want %d", i, got, step.until)
		}
	}
	if got := w.s.GapState(&w.s.Gaps[2]); got != GapSettled { // from before the start: nothing is promised of it
		t.Errorf("a gap that no sink lacks is %s", got)
	}
	if NewState().GapsUntil() != 0 || NewState().GapsToHeal() != nil {
		t.Error("an empty log has gaps")
	}
}

// TestGapThatIsKnownIsNotStored: two answers may find the same loss, and what was lost before the
// start excuses itself.
func TestGapThatIsKnownIsNotStored(t *testing.T) {
	w, err := claim(t, &memLog{}, NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	shards := append(seen("a", "b"), ShardSeen{ID: "c", Closed: true})
	w.must(t, &Start{Stream: "arn", Date: 30 * hour, Shards: shards}, marksOf("bigtable"),
		&Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Since: 10 * hour, Until: 20 * hour, Found: 30 * hour})
	w.must(t, &Gap{Feed: change.Feed{Stream: "arn", Shard: "b"}, Since: 1, Until: 31 * hour, Found: 31 * hour, Ends: true,
		Accepted: true})
	w.must(t, &Gap{Feed: change.Feed{Stream: "past"}, Since: 1, Until: 39 * hour, Found: 39 * hour, Ends: true})
	gap := func(shard string, found change.Millis, ends bool) *Gap {
		return &Gap{Feed: change.Feed{Stream: "arn", Shard: shard}, Until: found, Found: found, Ends: ends}
	}
	for name, c := range map[string]struct {
		gap             *Gap
		stored, excused bool
	}{
		"its shard stands before a gap": {gap("a", 31*hour, false), false, false},
		"its shard is finished":         {gap("b", 31*hour, true), false, false},
		"a shard goes on behind it":     {gap("c", 30*hour+1, false), true, false},
		"lost before the start":         {gap("c", 30*hour+1, true), true, true},
		"lost long after the start":     {gap("c", 60*hour, true), true, false},
		"between two streams":           {&Gap{Feed: change.Feed{Stream: "arn"}, Since: 1, Until: 40 * hour}, true, false},
		"between two streams, as known": {&Gap{Feed: change.Feed{Stream: "past"}, Since: 1, Until: 40 * hour}, false, false},
		"its shard is not in the log":   {gap("d", 31*hour, false), true, false},
	} {
		if stored := w.s.PrepareGap(c.gap); stored != c.stored {
			t.Errorf("%s: stored is %v", name, stored)
		}
		if excused := c.gap.Accepted && c.gap.Reason == ReasonBeforeStart; excused != c.excused {
			t.Errorf("%s: %+v", name, c.gap)
		}
	}
}

// TestGapIsSettledOnceNoSinkLacksIt: rows that are accepted as they are leave the archive without
// what was lost.
func TestGapIsSettledOnceNoSinkLacksIt(t *testing.T) {
	w := gapped(t)
	id := w.s.Gaps[0].ID()
	for _, step := range []struct {
		body *Control
		want GapState
	}{
		{&Control{}, GapOpen},
		{&Control{Resume: true}, GapAccepted},
		{&Control{Waive: &Waive{Gap: id, Sink: "bigtable"}}, GapAccepted},
		{&Control{Waive: &Waive{Gap: id, Sink: "archive"}}, GapSettled},
	} {
		if w.must(t, step.body); w.s.GapState(&w.s.Gaps[0]) != step.want {
			t.Errorf("%+v: the gap is %s, want %s", step.body, w.s.GapState(&w.s.Gaps[0]), step.want)
		}
	}
}

// TestDifferenceIsAsOldAsTheOldestGap that is left, in whatever order gaps were found.
func TestDifferenceIsAsOldAsTheOldestGap(t *testing.T) {
	w := gapped(t)
	w.must(t, &Gap{Feed: change.Feed{Stream: "arn", Shard: "b"}, Since: 5 * hour, Until: 6 * hour, Found: 31 * hour},
		&Control{Resume: true})
	for i, want := range []change.Millis{5 * hour, 10 * hour} {
		if got := w.s.DiffersSince(); got != want-change.CreatedEarly {
			t.Errorf("%d gaps are waived: differs since %d, want %d", i, got, want-change.CreatedEarly)
		}
		for _, sink := range []string{"bigtable", "archive"} {
			w.must(t, &Control{Waive: &Waive{Gap: w.s.Gaps[1].ID(), Sink: sink}})
		}
	}
}

// TestGapThatIsAcceptedAtOnceKeepsWhatWasGivenOut: repairs of what it lost must be above the
// versions of a burst before it, as those of a gap that an operator accepts.
func TestGapThatIsAcceptedAtOnceKeepsWhatWasGivenOut(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, marksOf(SinkBigtable), frame(page(w.s, "a", 3, false)))
	top := w.s.TopClock()
	w.must(t, &Gap{Feed: change.Feed{Stream: "arn", Shard: "b"}, Since: 1, Until: 2, Found: w.s.Date, Ends: true,
		Accepted: true})
	if g := w.s.Gaps[0]; top == 0 || g.Above != top {
		t.Errorf("versions up to %d were given out, and the gap says %d", top, g.Above)
	}
}
