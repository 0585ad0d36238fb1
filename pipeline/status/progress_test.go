package status

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
)

// TestCopyThatStandsStillIsSeen: a copy moves when items are added, and a paused one or none stands
// still in order.
func TestCopyThatStandsStillIsSeen(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	s := open(now.UnixMilli(), now.UnixMilli())
	s.Copy = &checkpoint.CopyState{Copy: checkpoint.Copy{ID: "c1", Parts: 2}, Marks: map[int]checkpoint.CopyMark{}}
	var last *Observed
	look := func() (still bool) {
		before := last
		last = Observe(Seen{State: s, Now: change.MillisOf(now)}, before)
		return before != nil && last.copyMoved.Equal(before.copyMoved)
	}
	if look() || !look() || !look() {
		t.Error("a copy without progress does not stand still")
	}
	s.Copy.Marks[0] = checkpoint.CopyMark{Items: 5}
	if look() || !look() {
		t.Error("an item was copied")
	}
	s.Copy.Paused = true
	if first, second := look(), look(); first || second {
		t.Error("a paused copy stands still in order")
	}
	s.Copy = nil
	if first, second := look(), look(); first || second {
		t.Error("there is no copy")
	}
}

// TestStatusTakesProgressFromTheOwner: the log says that a copy or a resync is pending and since
// when; the process that does it knows how fast it is, and only the log knows that it was paused a
// moment ago.
func TestStatusTakesProgressFromTheOwner(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	s := open(now.UnixMilli(), now.UnixMilli())
	s.Copy = &checkpoint.CopyState{Copy: checkpoint.Copy{ID: "c1", Parts: 2, Items: 100}, Paused: true}
	live := &Table{
		Copy:   &resync.Progress{ID: "c1", Rate: 7, ReadUnits: 40},
		Resync: &resync.WholeStatus{Doing: "comparing", Items: 3, Estimate: 10, Candidates: 4, Hot: 1},
	}
	seen := Seen{Source: "Orders", State: s, Now: change.MillisOf(now), ClaimTTL: time.Minute, Live: live}
	st := Of(seen)
	if st.State != "copying" || st.Copy.ReadUnits != 40 || st.Copy.Paused == "" || live.Copy.Paused != "" {
		t.Errorf("copy %+v in state %s", st.Copy, st.State)
	}
	if st.Resync != nil || st.ResyncSince != nil {
		t.Errorf("the log asks for no resync, and status shows one: %+v", st.Resync)
	}
	live.Copy.ID = "an older one"
	if st = Of(seen); st.Copy.ReadUnits != -1 {
		t.Errorf("progress of another copy: %+v", st.Copy)
	}

	s.Copy, s.Resync = nil, &checkpoint.PendingResync{ID: "r", Recover: true, Asked: change.MillisOf(now.Add(-time.Hour))}
	st = Of(seen)
	if st.State != "recovering" || !st.ResyncSince.Equal(now.Add(-time.Hour)) {
		t.Errorf("state %s since %v", st.State, st.ResyncSince)
	}
	const want = "(comparing: 3 of about 10 items, 4 may differ, 1 open)"
	if reasons := strings.Join(st.Reasons, "; "); !strings.Contains(reasons, want) {
		t.Errorf("%q, want %s", reasons, want)
	}
	for asked, want := range map[time.Time]string{
		time.Now().Add(-time.Hour): "differences are repaired, for 1 h 00 m", // Of takes the wall clock's time
		time.Now().Add(time.Hour):  "differences are repaired (",
	} {
		s.Resync = &checkpoint.PendingResync{ID: "r", Asked: change.MillisOf(asked)}
		if reasons := strings.Join(Of(seen).Reasons, "; "); !strings.Contains(reasons, want) {
			t.Errorf("asked %s: %q, want %s", asked, reasons, want)
		}
	}
}

// TestTableIsNotReadyBeforeItsCopyBegins: between the acceptance of a mapping and the first entry
// of the copy that it needs there is nothing to count, and the rows are still those of the old
// mapping.
func TestTableIsNotReadyBeforeItsCopyBegins(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	look := func(s *checkpoint.State) Table {
		return Of(Seen{State: s, Now: change.MillisOf(now), Carried: true, ClaimTTL: time.Minute})
	}
	due := func(st Table) bool { return strings.Contains(strings.Join(st.Reasons, " "), "has not begun") }
	if st := look(open(now.UnixMilli(), now.UnixMilli())); due(st) || st.State != "running" {
		t.Errorf("no copy is due: %s, %q", st.State, st.Reasons)
	}
	for name, set := range map[string]func(*checkpoint.State){
		"accepted": func(s *checkpoint.State) { s.Accepting = &checkpoint.Accept{From: "a", To: "b"} },
		"switched": func(s *checkpoint.State) { s.Switched = &checkpoint.Switch{To: "b"} },
		"started":  func(s *checkpoint.State) { s.Backfill = checkpoint.FromScan },
	} {
		s := open(now.UnixMilli(), now.UnixMilli())
		set(s)
		if st := look(s); !due(st) || st.State != "copying" {
			t.Errorf("%s: %s, %q", name, st.State, st.Reasons)
		}
	}
}

// TestTableThatMovesIsNotLate: between two looks at the log reading and applying may be seen to
// catch up, each by itself. Other reasons stay.
func TestTableThatMovesIsNotLate(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).UnixMilli()
	late := []Reason{{Code: WhyPaused, Text: "p"}, {Code: WhyLateRead, Text: "r"}, {Code: WhyLateApplied, Text: "a"}}
	for want, moved := range map[string]struct{ read, applied bool }{
		"p r a": {}, "p a": {read: true}, "p r": {applied: true}, "p": {read: true, applied: true},
	} {
		before, after := open(now, now-3_600_000), open(now, now-3_600_000)
		if moved.read {
			after = open(now, now-3_599_000)
		}
		if moved.applied {
			after.Marks["bigtable"] = checkpoint.Mark{Seq: 6}
		}
		var st Table
		st.Explain(late...)
		st.Moved(before, after)
		if got := strings.Join(st.Reasons, " "); got != want || st.Late() != (want != "p") {
			t.Errorf("%+v: %q, late %t, want %q", moved, got, st.Late(), want)
		}
	}
}
