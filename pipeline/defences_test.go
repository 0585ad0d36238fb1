package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/pipeline"
	sandbigtable "github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

// TestChangesOfAnItemReachBigtableInOrder looks at the calls themselves: at the end the guards hide
// every disorder. While nothing fails, a call is skipped only if a later version of its item was
// there before it.
func TestChangesOfAnItemReachBigtableInOrder(t *testing.T) {
	long(t, "14 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.front.Faults.Latency(0, 5*time.Millisecond)
	w.opts = func(o *pipeline.Options) { o.Lanes = 64 }
	r := w.start("Orders")
	r.settle() // from now on the replicator keeps up, so that not everything is united to the last version
	for i := range uint64(8) {
		w.changeItems("Orders", 300+i, 60)
		r.settle()
	}
	r.equal()
	skipped, retried := r.metricWith("tailrace_bigtable_calls_total", "outcome", "skipped"),
		r.metric("tailrace_bigtable_retries_total")
	written := r.metricWith("tailrace_bigtable_calls_total", "outcome", "ok")
	if skipped > retried || written < 100 {
		t.Errorf("of %v calls %v met a later version of their item, and only %v were sent again", written, skipped, retried)
	}
}

// sharedRows is a mapping whose writes are differences.
const sharedRows = `
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]
`

// TestChangeBehindADeadLetterWaitsForAResync: a difference to an image that was never applied
// leaves what it does not know of. A shared row with a wildcard is written by differences.
func TestChangeBehindADeadLetterWaitsForAResync(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.mapping = sharedRows
	w.createTable("Orders")
	w.put("Orders", "p", "s", `"a":{"N":"1"},"b":{"N":"1"}`)
	w.put("Orders", "q", "s", `"a":{"N":"1"}`)
	r := w.start("Orders")
	r.settle()
	before := r.stored("Orders")
	w.front.Faults.RefuseRow([]byte("p"), codes.InvalidArgument, 2)
	w.put("Orders", "p", "s", `"a":{"N":"1"}`)
	r.until("the removal of b is a dead letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	w.put("Orders", "p", "s", `"a":{"N":"2"}`)
	r.until("so is the change behind it", func() bool { return r.table("Orders").DeadLetters == 2 })
	r.settle()
	if got := r.stored("Orders"); strings.Join(got["p"], " ") != strings.Join(before["p"], " ") {
		t.Errorf("the row holds %v: a difference was applied to %v, which is not its old image", got["p"], before["p"])
	}
	if code := r.letter("Orders", 1).Code; code != "dirty" {
		t.Errorf("the second letter has the code %q, want dirty", code)
	}
	w.put("Orders", "q", "s", `"c":{"N":"2"}`) // its neighbours are not held up
	r.settle()
	want, got := r.projected("Orders"), r.stored("Orders")
	if strings.Join(want["q"], " ") != strings.Join(got["q"], " ") {
		t.Errorf("row q holds %v, want %v", got["q"], want["q"])
	}
}

// TestChangesBeforeADeadLetterAreNotBehindIt: a restart reads changes again that were applied
// before the refused one. As letters they could never be retried.
func TestChangesBeforeADeadLetterAreNotBehindIt(t *testing.T) {
	w := newWorld(t)
	w.mapping = sharedRows
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Millisecond }
	w.createTable("Orders")
	r := w.start("Orders")
	w.front.Faults.RefuseRow([]byte("stuck"), codes.Unavailable, -1) // the mark stays before it
	w.put("Orders", "stuck", "s", `"a":{"N":"1"}`)
	r.until("it is in the log", func() bool { return r.table("Orders").Changes == 1 })
	w.put("Orders", "p", "s", `"a":{"N":"1"},"b":{"N":"1"}`)
	w.put("Orders", "p", "s", `"a":{"N":"1"}`)
	r.until("they are applied", func() bool { return len(r.stored("Orders")["p"]) == len(r.projected("Orders")["p"]) })
	w.front.Faults.RefuseRow([]byte("p"), codes.InvalidArgument, 2)
	w.put("Orders", "p", "s", `"a":{"N":"2"}`)
	r.until("the last one is a letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	_ = r.stop() // it cannot drain
	w.front.Faults.Calm()
	r = w.start("Orders")
	r.settle()
	r.until("the letters are counted", func() bool { return r.table("Orders").DeadLetters > 0 })
	if n := r.table("Orders").DeadLetters; n != 1 || r.letter("Orders", 0).Behind {
		t.Errorf("%d dead letters, want only the one that was refused", n)
	}
}

// TestLogOfAnotherLifeIsRefused: a log of the same name that holds changes, of the same pipeline
// and table, but not the one that the pipeline's row in Bigtable names.
func TestLogOfAnotherLifeIsRefused(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.changeItems("Orders", 310, 40)
	run := func() {
		r := w.start("Orders")
		r.settle()
		r.equal()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	run()
	first := w.front
	other, err := sandbigtable.Open(sandbigtable.Options{Addr: "127.0.0.1:0", Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	w.front, w.dir = other, t.TempDir()
	run() // another Bigtable and another log: a pipeline of its own
	w.front = first
	r := w.start("Orders")
	// Where Bigtable is slow to answer, the log is read on until the row is known: then the table
	// halts.
	why := ""
	r.wait("the log of another life is refused", func() bool {
		if st := r.table("Orders"); st.Code == "log_lost" {
			why = st.Halt
		}
		var err error
		if r.hasEnded(&err) {
			why = fmt.Sprint("ended: ", err)
		}
		return why != ""
	})
	if !strings.Contains(why, "another one") {
		t.Fatalf("started on a log that belongs to another Bigtable: %s", why)
	}
}

// TestPagesDoNotOvertakeTheOneThatWaitsForItsLead: several pages of one shard come while its first
// waits for Bigtable.
func TestPagesDoNotOvertakeTheOneThatWaitsForItsLead(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.opts = func(o *pipeline.Options) { o.Periods.Lead = 100 * time.Millisecond }
	r := w.start("Orders")
	r.settle() // with that its start is noted in Bigtable, too
	w.clock.Freeze()
	w.front.Faults.Outage(0)
	burst := func() {
		for i := range 400 {
			w.put("Orders", "hot", "x", fmt.Sprintf(`"v":{"N":"%d"}`, i))
		}
	}
	read := func() float64 { return r.metric("tailrace_source_records_total") }
	burst()
	r.until("the shard waits for Bigtable", func() bool {
		return w.logged.FilterMessageSnippet("ran ahead of its reserved versions").Len() > 0
	})
	for i := range 3 {
		before := read()
		burst()
		r.until(fmt.Sprintf("page %d behind it is read", i+1), func() bool { return read() >= before+400 })
	}
	if n := r.table("Orders").Changes; n > 100 { // of the lead's 100 ms
		t.Errorf("%d changes are in the log although the shard used its lead up", n)
	}
	w.front.Faults.Recover()
	at := w.clock.Now()
	w.clock.Advance(10 * time.Second)
	r.settledAt(at)
	r.equal()
	if n := r.table("Orders").Changes; n != 1600 {
		t.Errorf("%d changes are in the log, want each of 1600 once", n)
	}
	if n := w.logged.FilterMessageSnippet("halt").Len(); n > 0 {
		t.Errorf("the table halted %d times", n)
	}
}
