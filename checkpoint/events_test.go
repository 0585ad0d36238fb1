package checkpoint

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// TestStateHoldsWhatHappened: what an operator may ask for later, in the order in which it
// happened.
func TestStateHoldsWhatHappened(t *testing.T) {
	w := gapped(t)
	gap := w.s.Gaps[0].ID()
	yes, at := true, change.Millis(31*hour)
	halt := func(why string) *Control { return &Control{Halt: &Halt{Sink: SinkArchive, Reason: why, At: at}} }
	over := &Control{Clear: true, ClearSink: SinkArchive}
	before := w.s.Events
	w.must(t, &Control{Pause: &yes, By: "ann", At: at}, &Control{Pause: &yes, By: "bob", At: at + 1})
	if want := (Pausing{At: at, By: "ann"}); w.s.Pausing != want {
		t.Errorf("paused as %+v, want %+v", w.s.Pausing, want)
	}
	w.must(t, &Control{Resume: true, By: "ann", At: at + 2},
		halt("no bucket"), over, halt("no bucket"), halt("no permission"), over,
		&Control{Resync: &ResyncOrder{ID: "r1"}, By: "ann", At: at + 3},
		&Beat{Date: 40 * hour})
	kinds := func(events []Event) (all []string) {
		for _, e := range events {
			all = append(all, fmt.Sprintf("%s %s by %s, %s, %d times, %d", e.Kind, e.Of, e.By, e.Why, e.Times, e.At))
		}
		return all
	}
	want := []string{
		fmt.Sprint("owner  by a, , 0 times, ", 30*hour),
		fmt.Sprint("gap "+gap+" by , , 0 times, ", 30*hour),
		fmt.Sprint("paused  by ann, , 0 times, ", at),
		fmt.Sprint("resumed  by ann, , 0 times, ", at+2),
		fmt.Sprint("gap_accepted "+gap+" by ann, , 0 times, ", at+2),
		fmt.Sprint("halted archive by , no bucket, 2 times, ", at),
		fmt.Sprint("halted archive by , no permission, 0 times, ", at),
		fmt.Sprint("went_on archive by , , 2 times, ", 30*hour),
		fmt.Sprint("resync r1 by ann, , 0 times, ", at+3),
	}
	if d := cmp.Diff(want, kinds(w.s.Events)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want[:2], kinds(before)); d != "" {
		t.Errorf("a list that was taken before has changed: %s", d)
	}
	if w.s.Pausing != (Pausing{}) {
		t.Errorf("still paused as %+v", w.s.Pausing)
	}
}

// TestEventsAreBounded: the newest are kept.
func TestEventsAreBounded(t *testing.T) {
	w := gapped(t)
	yes, no := true, false
	for i := range eventsKept {
		w.must(t, &Control{Pause: &yes, By: fmt.Sprint("on ", i)}, &Control{Pause: &no, By: fmt.Sprint("off ", i)})
	}
	last := w.s.Events[len(w.s.Events)-1]
	if n := len(w.s.Events); n != eventsKept || last.By != fmt.Sprint("off ", eventsKept-1) {
		t.Errorf("%d events, the last one by %s", n, last.By)
	}
}

// TestThousandsOfGapsLeaveTheRest: a stream of many shards that was not read for a day, because an
// operator had paused the table, gets a gap for each. They cost the same each, however many there
// are, and who paused the table stays known.
func TestThousandsOfGapsLeaveTheRest(t *testing.T) {
	var ids []string
	for i := range 2 * eventsKept {
		ids = append(ids, fmt.Sprint("shard", i))
	}
	w := owned(t, seen(ids...)...)
	yes := true
	w.must(t, &Control{Pause: &yes, By: "ann"}, marksOf("bigtable"))
	cost := func(id string) float64 {
		gap := lostWhole(w.s, id)
		return testing.AllocsPerRun(1, func() {
			before := w.s.situation(gap)
			w.s.applyGap(gap)
			w.s.noteEvents(&before, gap)
		})
	}
	first := cost(ids[0])
	for _, id := range ids[1:] {
		if n := cost(id); n > 2*first+10 {
			t.Fatalf("the gap of %s costs %.0f allocations, the first one %.0f", id, n, first)
		}
	}
	w.must(t, &Control{Resume: true, By: "bob"})
	kinds := map[EventKind]int{}
	for _, e := range w.s.Events {
		kinds[e.Kind] += max(1, e.Times)
		if gaps := e.Kind == EventGap || e.Kind == EventGapAccepted; gaps && e.Of != "" {
			t.Errorf("%d gaps have the name of one: %+v", e.Times, e)
		}
	}
	if kinds[EventPaused] != 1 || kinds[EventGap] != len(w.s.Gaps) || kinds[EventOwner] != 1 || len(w.s.Events) > 10 {
		t.Errorf("%d events: %v, want one pause and %d gaps", len(w.s.Events), kinds, len(w.s.Gaps))
	}
}

// TestTriesOfAHaltedTableLeaveTheRest: two processes try a table in turn for hours, in which the
// pipeline and both sinks halt.
func TestTriesOfAHaltedTableLeaveTheRest(t *testing.T) {
	w := gapped(t)
	yes := true
	w.must(t, &Control{Pause: &yes, By: "ann"})
	for i := range eventsKept / 2 { // three halts each
		other, err := claim(t, w.l, w.l.fold(t), fmt.Sprint("owner ", i%2), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, sink := range []string{SinkPipeline, SinkArchive, SinkBigtable} {
			other.must(t, &Control{Clear: true, ClearSink: sink}, &Control{Halt: &Halt{Sink: sink, Reason: "no permission"}})
		}
		w = other
	}
	if !slices.ContainsFunc(w.s.Events, func(e Event) bool { return e.Kind == EventPaused }) || len(w.s.Events) > 20 {
		t.Errorf("who paused the table is not among %d events", len(w.s.Events))
	}
}

// TestGapIsClosedForAllSinks: a gap that is healed in Bigtable and not in the archive is not
// closed.
func TestGapIsClosedForAllSinks(t *testing.T) {
	w := gapped(t)
	gap := w.s.Gaps[0].ID()
	closed := func() bool {
		return slices.ContainsFunc(w.s.Events, func(e Event) bool { return e.Kind == EventGapClosed && e.Of == gap })
	}
	w.must(t, &Control{Resume: true}, &Control{Resync: &ResyncOrder{ID: "r1"}},
		&Healed{ID: "r1", Gaps: []string{gap}, Sinks: map[string]string{SinkBigtable: ""}, Date: 40 * hour})
	if closed() {
		t.Errorf("closed, and the archive lacks what it lost: %+v", w.s.Events)
	}
	if w.must(t, &Control{Waive: &Waive{Gap: gap, Sink: SinkArchive}}); !closed() {
		t.Errorf("not closed: %+v", w.s.Events)
	}
}
