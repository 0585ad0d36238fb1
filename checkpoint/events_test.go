package checkpoint

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// TestStateHoldsWhatHappened: what an operator may ask for later, in the order in which it happened.
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
