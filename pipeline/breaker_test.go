package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// TestTableHaltsWhenBigtableRefusesEveryChange: the changes are not at fault. They are no dead
// letters, whatever lives begin meanwhile, and they are applied when the refusal ends.
func TestTableHaltsWhenBigtableRefusesEveryChange(t *testing.T) {
	long(t, "10 s")
	const refusals, changes = 1000, 1300 // the first is how many letters there may be
	w := newWorld(t)
	w.opts = func(o *pipeline.Options) { o.Lanes = 64 }
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "good", "s", `"v":{"N":"1"}`)
	r.settle()
	w.front.Faults.RefuseRow([]byte("x"), codes.InvalidArgument, -1)
	var items []request.Item
	put := func(from, to int) {
		for i := from; i < to; i++ {
			w.put("Orders", fmt.Sprint("x", i), "s", `"v":{"N":"1"}`)
			items = append(items, itemOf(fmt.Sprint("x", i), "s"))
		}
	}
	halted := func() bool {
		h := r.folded("Orders").AllHalts()["bigtable"]
		return h != nil && h.Code == "refused_all"
	}
	tries := func() int { return w.logged.FilterMessage("halt the sink: will be tried again").Len() }
	put(0, changes)
	r.hastenUntil("the table is halted", halted)
	if st := r.table("Orders"); st.State != "halted" || !strings.Contains(st.Halt, "sandbox: row refused") {
		t.Errorf("state %s, %q: want it halted with Bigtable's reason", st.State, st.Halt)
	}
	for range 3 { // it is tried again, also by another life
		n := tries()
		r.hastenUntil("it is tried again", func() bool { return tries() > n+1 })
		_ = r.stop()
		r = w.start("Orders")
		r.hastenUntil("the next life is halted too", halted)
	}
	put(changes, changes+100)
	if n := r.countLetters(); n != refusals {
		t.Errorf("%d dead letters, want %d", n, refusals)
	}

	w.front.Faults.Calm()
	r.hastenUntil("the halt is over", func() bool { return r.table("Orders").State == "running" })
	r.settle()
	if n := r.countLetters(); n != refusals {
		t.Errorf("%d dead letters after the refusals, want %d", n, refusals)
	}
	out := r.answered(r.ask(request.Letters, items...))
	if out.Written != changes+100 || out.Refused+out.Waiting+out.Hot+out.Left > 0 || out.Applied > refusals {
		t.Errorf("the retry: %+v", out)
	}
	if n := r.countLetters(); n > 0 {
		t.Errorf("%d dead letters are left", n)
	}
	r.settle()
	r.equal()
}

// TestResumeLetsAThousandMoreBecomeLetters: a load of items that are refused for good is brought to
// its end by hand.
func TestResumeLetsAThousandMoreBecomeLetters(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	w.opts = func(o *pipeline.Options) { o.Lanes = 64 }
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	w.front.Faults.RefuseRow([]byte("x"), codes.InvalidArgument, -1)
	for i := range 1200 {
		w.put("Orders", fmt.Sprint("x", i), "s", `"v":{"N":"1"}`)
	}
	halted := func() bool { return r.folded("Orders").AllHalts()["bigtable"] != nil }
	r.hastenUntil("the table is halted", halted)
	r.control("Orders", &checkpoint.Control{Clear: true, By: "test", At: r.folded("Orders").Date})
	r.hastenUntil("the rest are letters", func() bool { return r.countLetters() == 1200 && !halted() })
	w.put("Orders", "good", "s", `"v":{"N":"1"}`)
	r.settle()
	if rows := r.stored("Orders"); len(rows) != 1 {
		t.Errorf("rows %v, want the one that is taken", rows)
	}
}

// countLetters returns how many dead letters are stored.
func (r *run) countLetters() int {
	r.t.Helper()
	n, err := r.letters("Orders").Count(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
