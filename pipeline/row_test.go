package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// outage ends a run, and makes Bigtable go away before the next one.
func (r *run) outage() {
	r.t.Helper()
	r.settle()
	if err := r.stop(); err != nil {
		r.t.Fatal(err)
	}
	r.front.Faults.Outage(0)
}

func TestRestartWithoutBigtableReadsOn(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 91, 50)
	r.outage()
	before := r.table("Orders").Changes
	w.changeItems("Orders", 92, 100)
	r = w.restart("Orders")
	r.until("what was written is in the log", func() bool { return r.table("Orders").Changes >= before+90 })
	for _, e := range w.logged.FilterMessageSnippet("row in Bigtable is not known yet").All() {
		// A call that got no answer at all, on a busy machine, has nothing better to say than that.
		why := fmt.Sprint(e.ContextMap()["error"])
		if !strings.Contains(why, "Unavailable") && !strings.Contains(why, "rpc error: code = DeadlineExceeded") {
			t.Errorf("the log blames %q, want what Bigtable answered", why)
		}
	}
	w.front.Faults.Recover()
	r.settle()
	r.equal()
}

// The log names this pipeline and table. Only the row shows that there has been a later life.
func TestLogThatTheRowDoesNotNameIsReadAndNotApplied(t *testing.T) {
	long(t, "6 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "x", `"v":{"N":"1"}`)
	r.settle()
	if err := r.stop(); err != nil { // an owner that works finds the other row within a look
		t.Fatal(err)
	}
	rival, err := bigtable.Open(t.Context(), bigtable.Options{Pipeline: "shop", Project: "local",
		Instance: "local", Endpoint: w.front.Addr(), Now: w.clock.Now}, w.log, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer rival.Close()
	row, err := rival.LoadState(t.Context(), "shop", "Orders")
	if err != nil {
		t.Fatal(err)
	}
	next := *row
	next.Life++
	if err := rival.CompareAndSet(t.Context(), row, &next); err != nil {
		t.Fatal(err)
	}
	w.front.Faults.Outage(0)
	w.put("Orders", "b", "x", `"v":{"N":"1"}`)
	r = w.restart("Orders")
	r.until("what was written is in the log", func() bool { return r.table("Orders").Changes == 2 })
	w.front.Faults.Recover()
	r.until("the table is halted", func() bool { return r.table("Orders").State == "halted" })
	if code := r.table("Orders").Code; code != "log_lost" {
		t.Errorf("halted with code %q, want log_lost", code)
	}
	if rows := len(r.stored("Orders")); rows != 1 {
		t.Errorf("%d rows in Bigtable, want the one from before", rows)
	}
}

func TestOtherMappingIsRefusedWithoutBigtable(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "x", `"v":{"N":"1"}`)
	r.outage()
	w.mapping = otherRows
	r = w.restart("Orders")
	r.until("the table is halted", func() bool { return r.table("Orders").Code == outcome.CodeMapping })
	w.front.Faults.Recover() // the row says the same: that ends the process
	refused := (*pipeline.RefusedError)(nil)
	if err := r.end(); !errors.As(err, &refused) || !strings.Contains(refused.What, "mapping") {
		t.Errorf("another mapping was taken: %v", err)
	}
}

// Without the row it is unknown how far versions may run ahead: as far as every row allows.
func TestBurstAfterARestartWithoutBigtableWaitsForIt(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.opts = func(o *pipeline.Options) { o.Periods.Lead = 100 * time.Millisecond }
	r := w.start("Orders")
	r.outage()
	w.clock.Freeze()
	r = w.restart("Orders")
	for i := range 600 {
		w.put("Orders", "hot", "x", fmt.Sprintf(`"v":{"N":"%d"}`, i))
	}
	r.until("the burst waits", func() bool {
		return w.logged.FilterMessageSnippet("a burst ran ahead of its reserved versions").Len() > 0
	})
	w.front.Faults.Recover()
	r.until("all of it is in the log", func() bool { return r.table("Orders").Changes == 600 })
	row, err := r.sink.LoadState(t.Context(), "shop", "Orders")
	if err != nil {
		t.Fatal(err)
	}
	if ahead := time.Duration(r.table("Orders").ClockAhead * float64(time.Second)); row.Lead < ahead {
		t.Errorf("versions are %s ahead, %s are reserved", ahead, row.Lead)
	}
}

// Killed between the start entry and the note in the row that changes are read: without that note a
// lost log would be taken for one that never held any, so nothing may be read before it.
func TestStartThatIsNotNotedInTheRowWaitsForBigtable(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Users")
	w.createTable("Orders")
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Millisecond }
	r := w.start("Users")
	w.put("Users", "a", "x", `"v":{"N":"1"}`)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.faults.Inject(fault.Rule{Effect: fault.Error, Operation: "DescribeStream",
		Code: "InternalServerError"}); err != nil {
		t.Fatal(err)
	}
	r = w.start("Orders")
	r.until("the table has its row", func() bool {
		row, err := r.sink.LoadState(t.Context(), "shop", "Orders")
		return err == nil && !row.Issued
	})
	w.front.Faults.Outage(0)
	w.faults.Calm()
	r.until("the table is started", func() bool { return r.folded("Orders").LiveStream() != nil })
	_ = r.stop() // it waits for Bigtable
	w.put("Orders", "a", "x", `"v":{"N":"1"}`)
	w.put("Users", "b", "x", `"v":{"N":"1"}`)
	r = w.restart("Orders", "Users")
	r.until("the other table is read", func() bool { return r.table("Users").Changes == 2 })
	if n := w.logged.FilterMessageSnippet("enough to read on").Len(); n != 1 || r.folded("Orders").Changes > 0 {
		t.Errorf("%d tables are read without their rows, %d changes of Orders", n, r.folded("Orders").Changes)
	}
	w.front.Faults.Recover()
	r.settle()
	r.equal()
	if row, err := r.sink.LoadState(t.Context(), "shop", "Orders"); err != nil || !row.Issued {
		t.Errorf("changes are read, and the row does not say so: %v", err)
	}
}

// Two processes of one pipeline start for the first time, each with a log of its own, and the other
// one is faster: the row names its log, and says that changes are read into that.
func TestRowThatNamesTheLogOfAFasterStartIsObeyed(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	if err := w.faults.Inject(fault.Rule{Effect: fault.Error, Operation: "DescribeStream",
		Code: "InternalServerError"}); err != nil {
		t.Fatal(err)
	}
	r := w.start("Orders")
	var row *bigtable.State
	r.until("the table has its row", func() (there bool) {
		var err error
		row, err = r.sink.LoadState(t.Context(), "shop", "Orders")
		return err == nil
	})
	next := *row
	next.Issued, next.Identity.LogCreated = true, row.Identity.LogCreated.Add(time.Second)
	if err := r.sink.CompareAndSet(t.Context(), row, &next); err != nil {
		t.Fatal(err)
	}
	w.put("Orders", "a", "x", `"v":{"N":"1"}`)
	w.faults.Calm()
	r.until("the table is halted", func() bool { return r.table("Orders").Code == "log_lost" })
	if s := r.folded("Orders"); s.Changes > 0 || len(r.stored("Orders")) > 0 {
		t.Errorf("%d changes were read, %d rows written", s.Changes, len(r.stored("Orders")))
	}
}
