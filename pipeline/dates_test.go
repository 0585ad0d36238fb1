package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/source"
)

// changeAll changes every other item of fillOld and removes the rest.
func (w *world) changeAll(n int) {
	w.t.Helper()
	for i := range n {
		pk, sk := fmt.Sprint("p#", i%7), fmt.Sprint("s", i)
		if i%2 == 0 {
			w.put("Orders", pk, sk, `"v":{"N":"1000"}`)
		} else {
			w.delete("Orders", pk, sk)
		}
	}
}

// TestDatesAheadWhileATableIsCopied: the Dates of the first replies are 100 s ahead, and then
// right. Versions from them would be above those of every change of the next 100 s, which Bigtable
// would then lack for good.
func TestDatesAheadWhileATableIsCopied(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t)
	w.sopts = func(o *source.Options) { o.DateTrust = 2 * time.Second }
	w.oldTable(40)
	w.faults.Skew(100 * time.Second)
	r := w.start("Orders")
	r.until("the copy waits, or has written", func() bool {
		return w.logged.FilterMessageSnippet("wait until it has advanced steadily").Len() > 0 || len(r.stored("Orders")) > 0
	})
	if ready, why := r.p.Ready(); ready || !strings.Contains(strings.Join(why, "\n"), "the time is uncertain") {
		t.Errorf("ready: %v, %q", ready, why)
	}
	if apart := r.metric("tailrace_source_time_apart_seconds"); apart < 90 { // the sandbox's clock is ahead besides
		t.Errorf("the metric says that the time is %v s apart", apart)
	}
	w.faults.Skew(0)
	w.changeAll(40)
	r.copied()
	r.until("ready", func() bool { ready, _ := r.p.Ready(); return ready })
	r.settle()
	r.equal()
}

// TestDatesAheadForAWhileChangeNothing: the time is known when Dates are 100 s ahead or behind
// while a table is copied.
func TestDatesAheadForAWhileChangeNothing(t *testing.T) {
	long(t, "8 s")
	for _, wrong := range []time.Duration{100 * time.Second, -100 * time.Second} {
		t.Run(wrong.String(), func(t *testing.T) { testDates(t, wrong) })
	}
}

func testDates(t *testing.T, wrong time.Duration) {
	w := newWorld(t)
	w.sopts = func(o *source.Options) { o.DateTrust = time.Hour }
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 40)
	r.settle()
	w.faults.Skew(wrong)
	r.until("a Date is dropped", func() bool { return w.logged.FilterMessageSnippet("Date is dropped").Len() > 0 })
	w.changeItems("Orders", 2, 40)
	w.faults.Skew(0)
	r.settle()
	r.equal()
}

// TestFirstDateAheadProvesNothing: the first Dates are 100 s ahead. What is written in these 100 s
// was not read by then, whatever the readings of these replies show.
func TestFirstDateAheadProvesNothing(t *testing.T) {
	w := newWorld(t)
	w.sopts = func(o *source.Options) { o.DateTrust = time.Minute }
	w.createTable("Orders")
	w.faults.Skew(100 * time.Second)
	r := w.start("Orders")
	r.until("the shards were read", func() bool { s := r.folded("Orders"); return s.Listed > 0 && s.ReadWatermark() > 0 })
	w.faults.Skew(0)
	if err := w.faults.Inject(fault.Rule{Effect: fault.Throttle, Operation: "GetRecords"}); err != nil {
		t.Fatal(err)
	}
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	goal := protocol.Goal{Through: change.MillisOf(w.clock.Now().Add(time.Second))}
	s := r.folded("Orders")
	if a := goal.Look(s, 0); a.Met() {
		t.Errorf("nothing was read, and everything is applied: listed %s, read through %s, now %s, %d changes",
			s.Listed.Time(), s.ReadWatermark().Time(), w.clock.Now(), s.Changes)
	}
}
