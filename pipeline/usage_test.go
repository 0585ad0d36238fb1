package pipeline

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestCostIsThatOfTheLastHour: a busy day before it is no cost of now, and what another process did
// is not counted as idleness.
func TestCostIsThatOfTheLastHour(t *testing.T) {
	var u usage
	begin := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	at := func(after time.Duration, reads uint64) usageSample {
		return usageSample{at: begin.Add(after), counts: status.CostCounts{StreamReads: reads}}
	}
	if c := u.cost(at(0, 5)); c != nil {
		t.Errorf("before the first sample: %+v", c)
	}
	u.note(at(0, 1_000_000))
	if c := u.cost(at(100*time.Millisecond, 1_000_001)); c != nil {
		t.Errorf("after 100 ms: %+v", c)
	}
	if c := u.cost(at(3*time.Minute, 1_000_180)); c == nil || c.StreamReads != 1 || c.Seconds != 180 {
		t.Errorf("after three minutes: %+v", c)
	}
	reads := uint64(1_000_000)
	for s := 10 * time.Second; s <= 5*time.Hour; s += 10 * time.Second {
		if reads += 20; s > 4*time.Hour {
			reads += 20
		}
		u.note(at(s, reads))
	}
	if len(u.samples) != usageKept {
		t.Errorf("%d samples", len(u.samples))
	}
	if c := u.cost(at(5*time.Hour, reads)); c == nil || c.StreamReads != 4 || c.Seconds != 3600 {
		t.Errorf("of the last hour: %+v", c)
	}
	u.clear()
	if c := u.cost(at(6*time.Hour, reads)); c != nil {
		t.Errorf("in another process: %+v", c)
	}
}

// TestCopyIsNoCostOfEveryMonth: the cost names it while it runs, and as long as its reads are in
// the rate.
func TestCopyIsNoCostOfEveryMonth(t *testing.T) {
	var u usage
	begin := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	sample := func(after time.Duration, passing bool) usageSample {
		return usageSample{at: begin.Add(after), passing: passing}
	}
	u.note(sample(0, false))
	if c := u.cost(sample(time.Minute, false)); c.Passing {
		t.Error("a copy is named, and none ran")
	}
	if c := u.cost(sample(time.Minute, true)); !c.Passing {
		t.Error("a copy that runs is not named")
	}
	u.note(sample(30*time.Second, true)) // between two samples that are kept
	for m := time.Minute; m <= time.Hour; m += time.Minute {
		if u.note(sample(m, false)); !u.cost(sample(m, false)).Passing {
			t.Fatalf("after %v its reads are in the rate", m)
		}
	}
	if u.note(sample(61*time.Minute, false)); u.cost(sample(62*time.Minute, false)).Passing {
		t.Error("an hour later it is still named")
	}
}

// TestStatusHasTheCostOfATableThatIsCarried, and none of one that another process carries.
func TestStatusHasTheCostOfATableThatIsCarried(t *testing.T) {
	p, x, _ := ownedTable(t, Options{})
	now := time.Now()
	if st := x.view.status(now); st.Cost != nil {
		t.Errorf("before it was measured: %+v", st.Cost)
	}
	x.view.remember(now)
	if st := p.Status().Tables[0]; st.Source != "Orders" {
		t.Fatal(st.Source)
	}
	if st := x.view.status(now.Add(time.Minute)); st.Cost == nil || st.Cost.Seconds != 60 || st.Cost.Dollars.Total != 0 {
		t.Errorf("after a minute without calls: %+v", st.Cost)
	}
	x.view.publish(func(s *snapshot) { s.rival = &rival{owner: "b", moved: now} })
	x.view.remember(now.Add(2 * time.Minute))
	x.view.publish(func(s *snapshot) { s.rival = nil })
	if st := x.view.status(now.Add(3 * time.Minute)); st.Cost != nil {
		t.Errorf("while another process carried it: %+v", st.Cost)
	}
}
