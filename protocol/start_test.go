package protocol

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestMappingCopyIsAboveTheMappingBefore: versions may run ahead of time, and the copy must replace
// every row that the mapping before wrote.
func TestMappingCopyIsAboveTheMappingBefore(t *testing.T) {
	const now change.Millis = 1_000_000_000
	v := change.Version(now)
	s := checkpoint.NewState()
	if MappingCopy(s, now) != nil {
		t.Error("a log without another mapping is to be copied")
	}
	for _, above := range []change.Version{0, v - 1e6, v, v + 600_000} {
		s.Switched = &checkpoint.Switch{To: "other", Above: above, Seq: 7}
		c := MappingCopy(s, now)
		if c.ID != "mapping-other-7" || c.Why != checkpoint.CopyMapping {
			t.Errorf("the copy is %+v", c)
		}
		if c.Began < now {
			t.Errorf("above %d: begins at %d, before the switch at %d", above, c.Began, now)
		}
		if v := Version(c.Began, 0); v <= above {
			t.Errorf("above %d: the first page has version %d", above, v)
		}
	}
}

// TestFirstCopyIsMadeOnce: until it has an entry, each owner begins the same one.
func TestFirstCopyIsMadeOnce(t *testing.T) {
	s := checkpoint.NewState()
	s.Streams = []*checkpoint.Stream{{Date: 5000}}
	if FirstCopy(s) != nil {
		t.Error("a copy without a start that wants one")
	}
	s.Backfill = checkpoint.FromScan
	c := FirstCopy(s)
	if c == nil || c.ID != "backfill-1" || c.From != checkpoint.FromScan || c.Began <= 5000 {
		t.Fatalf("the copy is %+v", c)
	}
	if s.Life = 3; FirstCopy(s).ID != "backfill-3" { // the log of a later life has a copy of its own
		t.Errorf("the copy of life 3 is %s", FirstCopy(s).ID)
	}
	if from := CopyFrom(&checkpoint.CopyState{Copy: *c}); from <= c.Began+1000 { // a Date is cut to whole seconds
		t.Errorf("the first page is read from %d on, and the copy begins at %d", from, c.Began)
	}
	if s.Copy = (&checkpoint.CopyState{Copy: *c}); FirstCopy(s) != nil {
		t.Error("a second copy")
	}
}

// TestFloorIsAboveEveryVersionThatWasGivenOut: versions may have run ahead of time, and the
// service's clocks differ.
func TestFloorIsAboveEveryVersionThatWasGivenOut(t *testing.T) {
	const now change.Millis = 1_000_000_000
	lead := 10 * time.Minute
	const cut = 999 // a Date is cut to whole seconds
	if f := FloorAfter(0, now, lead); f <= change.Version(now+cut+30_000)+change.Version(lead.Milliseconds()) {
		t.Errorf("the floor is %d", f)
	}
	if f := FloorAfter(change.Version(now)*2, now, lead); f != change.Version(now)*2 {
		t.Errorf("the floor falls to %d", f)
	}
}

// TestRecoveredStartIsReadFromBefore: records from before the listing are read again, because clocks
// differ, and are not applied to Bigtable. An archive takes all that are left.
func TestRecoveredStartIsReadFromBefore(t *testing.T) {
	const listed = 1_700_000_000_000
	s := RecoveredStart("latest", 9, listed, false)
	if !s.Recover || s.Floor != 9 || s.Date != listed || s.After != listed || s.At != listed-StartBefore ||
		s.Mode != "latest" {
		t.Errorf("%+v", s)
	}
	if s := RecoveredStart("latest", 9, listed, true); s.At != 0 || s.After != listed {
		t.Errorf("with an archive: %+v", s)
	}
}

// TestPlannedStartHasTheTimeOfItsListing: the first copy, and what a first gap may have lost, count
// from it. How each wish is planned is tested with the configuration.
func TestPlannedStartHasTheTimeOfItsListing(t *testing.T) {
	const listed = 1_700_000_000_000
	for _, w := range []StartWish{{Free: true}, {Backfill: BackfillNone, At: listed}, {AllRecords: true}} {
		if s, ok := PlanStart(w, listed); !ok || s.Date != listed {
			t.Errorf("%+v: %+v, %t", w, s, ok)
		}
	}
}

// TestCopyNeedsStartBefore: a start that leaves out a change that the first page of a copy may lack
// copies nothing, or is refused where a copy was asked for.
func TestCopyNeedsStartBefore(t *testing.T) {
	const listed = 1_700_000_000_000
	for at, covers := range map[change.Millis]bool{listed - StartBefore: true, listed - StartBefore + 1: false} {
		s, ok := PlanStart(StartWish{Mode: "m", At: at}, listed)
		if !ok || s.At != at || (s.Backfill == checkpoint.FromScan) != covers {
			t.Errorf("from %d before the listing: %+v, %t", listed-at, s, ok)
		}
		if _, ok := PlanStart(StartWish{Mode: "m", At: at, Backfill: checkpoint.FromScan}, listed); ok != covers {
			t.Errorf("from %d before the listing, with a copy: %t", listed-at, ok)
		}
	}
}
