package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestOutageAfterTheStartOfANewTableIsAGap: a table that a selection has found is not copied,
// because its stream holds everything. It is 22 hours old at its start, the process dies before the
// first page, and is away while the oldest records are trimmed. The start is no time up to which
// the stream is complete.
func TestOutageAfterTheStartOfANewTableIsAGap(t *testing.T) {
	w := newWorld(t)
	w.backfill = pipeline.Backfill{}
	first := change.MillisOf(w.clock.Now())
	w.opts = func(o *pipeline.Options) {
		o.Tables[0].NewAfter = func(context.Context) (change.Millis, error) { return first, nil }
	}
	w.clock.Advance(time.Minute)
	w.createTable("Orders")
	w.put("Orders", "p", "lost", `"v":{"N":"1"}`)
	w.clock.Advance(22 * time.Hour)
	w.put("Orders", "p", "kept", `"v":{"N":"1"}`)
	release := w.holdIterators()
	r := w.start("Orders")
	r.until("the start is decided", func() bool { return w.logged.FilterMessage("start").Len() > 0 })
	for _, e := range w.logged.FilterMessage("start").All() {
		if got := e.ContextMap()["backfill"]; got != "none" {
			t.Fatalf("backfill %v", got)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	release()
	w.clock.Advance(3 * time.Hour)
	w.streams.Trim(w.clock.Now().Add(-24 * time.Hour))
	r = w.start("Orders")
	r.until("what was lost is a gap, or everything counts as read", func() bool {
		return r.table("Orders").Changes > 0 || r.table("Orders").Gaps > 0
	})
	if r.table("Orders").Gaps == 0 {
		t.Fatal("a change is lost, and nothing says so")
	}
	r.lost()
}

// TestNewTableIsCopiedWhenItsEntrySaysSo: that its stream holds everything is no reason not to.
func TestNewTableIsCopiedWhenItsEntrySaysSo(t *testing.T) {
	for from, want := range map[string]string{"scan": "scan", "": "none"} {
		t.Run("backfill "+want, func(t *testing.T) {
			w := newWorld(t)
			w.backfill = pipeline.Backfill{From: from}
			first := change.MillisOf(w.clock.Now())
			w.opts = func(o *pipeline.Options) {
				o.Tables[0].NewAfter = func(context.Context) (change.Millis, error) { return first, nil }
			}
			w.clock.Advance(time.Minute)
			w.createTable("Orders")
			w.put("Orders", "p", "a", `"v":{"N":"1"}`)
			r := w.start("Orders")
			r.until("the start is decided", func() bool { return w.logged.FilterMessage("start").Len() > 0 })
			for _, e := range w.logged.FilterMessage("start").All() {
				if got := e.ContextMap()["backfill"]; got != want {
					t.Errorf("the start says %v", got)
				}
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestItemsThatAStartLeavesOutAreNamed: with source.start: latest the items of before are not
// copied, and no status may call Bigtable complete until a resync has compared them.
func TestItemsThatAStartLeavesOutAreNamed(t *testing.T) {
	w := newWorld(t)
	w.opts = func(o *pipeline.Options) { o.Start.Latest = true }
	w.createTable("Orders")
	const before = 7
	for i := range before {
		w.put("Orders", fmt.Sprint("p", i), "s", `"v":{"N":"1"}`)
	}
	w.clock.Advance(time.Minute)
	r := w.start("Orders")
	r.settle()
	st := r.table("Orders")
	if st.NotCopied != before || len(st.Reasons) > 0 {
		t.Errorf("%d items are not copied, reasons %v, want %d and none", st.NotCopied, st.Reasons, before)
	}
	if v := r.p.Status().Verdict; v.State != status.StateHealthy ||
		!strings.Contains(v.Cause, "7 older items of Orders") || !strings.Contains(v.Next, "repair --table Orders") {
		t.Errorf("%+v", v)
	}
	r.kill()
	r = w.restart("Orders")
	r.settle()
	if n := r.table("Orders").NotCopied; n != before {
		t.Errorf("%d items are not copied after a restart", n)
	}
	r.order("r1")
	r.healed()
	r.until("all items are compared", func() bool { return r.table("Orders").NotCopied == 0 })
	r.equal()
}
