package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

func TestManyTooOldChangesHaltTheTable(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	w.front.Faults.Outage(0)
	for i := range 300 {
		w.put("Orders", fmt.Sprint("old", i), "x", `"v":{"N":"1"}`)
	}
	r.until("they are in the log", func() bool { return r.table("Orders").Changes == 300 })
	r.age()
	r.until("the table is halted", func() bool { return r.table("Orders").State == "halted" })
	if st := r.table("Orders"); st.Code != "too_old" {
		t.Errorf("halted with code %q, want too_old", st.Code)
	}
	r.until("letters are counted", func() bool { return r.table("Orders").DeadLetters > 0 })
	if n := r.table("Orders").DeadLetters; n > 150 {
		t.Errorf("%d dead letters before the halt, want about 100", n)
	}
}

// Letters from before an applied change stay in the store. A look at all of them must not count
// them again.
func TestTooOldChangesBeforeAnAppliedOneDoNotCount(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	const each = 60
	old := func(n, before int) {
		r.settle()
		w.front.Faults.Outage(0)
		for i := range each {
			w.put("Orders", fmt.Sprint("old", n, "-", i), "x", `"v":{"N":"1"}`)
		}
		r.until("they are in the log", func() bool { return int(r.table("Orders").Changes) == before+each })
		r.age()
	}
	old(1, 0)
	r.until("they are letters", func() bool { return r.table("Orders").DeadLetters == each })
	w.front.Faults.Recover()
	w.put("Orders", "fresh", "x", `"v":{"N":"1"}`)
	r.settle()
	if err := r.letters("Orders").Drop(t.Context(), r.letter("Orders", 0).ID); err != nil {
		t.Fatal(err)
	}
	r.until("the table has looked at its letters", func() bool { return r.table("Orders").DeadLetters == each-1 })
	old(2, each+1)
	r.until("all are letters, or the table is halted", func() bool {
		return r.table("Orders").DeadLetters == 2*each-1 || r.table("Orders").Code == "too_old"
	})
	w.front.Faults.Recover()
	if st := r.table("Orders"); st.Code != "" {
		t.Errorf("halted with %d letters: %s", st.DeadLetters, st.Halt)
	}
}

// someRows is a mapping that makes no row of some items.
const someRows = `
families: {d: {max_versions: 1}}
rules:
- name: some
  match: {pk: "old{n}", sk: "{s}"}
  row: "{n}#{s}"
  cells: [{attr: v, to: "d:v"}]
- name: none
  match: {pk: "none{n}", sk: "{s}"}
  drop: true
`

// A change of which the mapping makes no row is not one that Bigtable takes.
func TestChangesWithoutRowsDoNotHideThatAllAreTooOld(t *testing.T) {
	w := newWorld(t)
	w.mapping = someRows
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	w.front.Faults.Outage(0)
	for i := range 150 {
		w.put("Orders", fmt.Sprint("old", i), "x", `"v":{"N":"1"}`)
		w.put("Orders", fmt.Sprint("none", i), "x", `"v":{"N":"1"}`)
	}
	r.until("they are in the log", func() bool { return r.table("Orders").Changes == 300 })
	r.age()
	r.until("the table is halted", func() bool { return r.table("Orders").Code == "too_old" })
}

// age advances the clock until waiting changes are too old, and waits until the source has seen the
// new time. Bigtable must stay away until the dead letters are stored: a call that was sent before
// may still arrive and succeed.
func (r *run) age() {
	r.t.Helper()
	r.clock.Advance(8 * 24 * time.Hour)
	at := r.clock.Now().Add(-time.Minute).UnixMilli()
	r.until("the clock has moved", func() bool {
		now, _ := r.src.Now()
		return now > change.Millis(at)
	})
}

// The limit of refusals for age holds across lives: the second one begins where the first ended.
func TestTooOldChangesCountAcrossRestarts(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.mapping = someRows
	w.createTable("Orders")
	r := w.start("Orders")
	const each = 60
	old := func(n int) {
		// The sink passes it only once the pipeline's row is read, and does not count it as taken.
		w.put("Orders", fmt.Sprint("none", n), "x", `"v":{"N":"1"}`)
		r.settle()
		w.front.Faults.Outage(0)
		for i := range each {
			w.put("Orders", fmt.Sprint("old", n, "-", i), "x", `"v":{"N":"1"}`)
		}
		r.until("they are in the log", func() bool { return int(r.folded("Orders").Changes) == n*(each+1) })
		r.age()
	}
	old(1)
	r.until("they are letters", func() bool { return r.table("Orders").DeadLetters == each })
	w.front.Faults.Recover()
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = w.start("Orders")
	old(2)
	r.until("the table is halted", func() bool { return r.table("Orders").Code == "too_old" })
	r.until("the letters are counted", func() bool { return r.table("Orders").DeadLetters >= 100 })
	if n := r.table("Orders").DeadLetters; n > 100 {
		t.Errorf("%d dead letters before the halt, want 100", n)
	}
}
