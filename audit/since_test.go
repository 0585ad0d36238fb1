package audit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// world is a replicator with one table, whose rows are the ones that the default mapping gives.
type world struct {
	*daemontest.World
	t *testing.T
	d *daemontest.Daemon
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	t.Parallel()
	w := &world{World: daemontest.New(t, seed), t: t}
	w.Configure("{source: Orders, target: orders, backfill: none}")
	w.Prepare("Orders")
	return w
}

// full compares all items.
func (w *world) full(o audit.Options) report.Table {
	w.t.Helper()
	_, s := w.Pair("Orders")
	var found []report.Table
	var err error
	w.While("all items are compared", func() { found, err = audit.Full(w.t.Context(), w.Config, s, o) })
	if err != nil || len(found) != 1 {
		w.t.Fatalf("%d tables: %v", len(found), err)
	}
	return found[0]
}

// since compares what has changed since the last full comparison; with ago, since that time.
func (w *world) since(ago time.Duration) report.Table {
	w.t.Helper()
	_, s := w.Pair("Orders")
	var at time.Time
	if ago > 0 {
		at = w.Clock.Now().Add(-ago)
	}
	var found []report.Table
	var err error
	w.While("what has changed is compared", func() {
		found, err = audit.Since(w.t.Context(), w.Config, s, audit.Options{}, at)
	})
	if err != nil || len(found) != 1 {
		w.t.Fatalf("%d tables: %v", len(found), err)
	}
	return found[0]
}

// put writes n items, and waits until they are applied.
func (w *world) put(n int, value string) {
	w.t.Helper()
	for i := range n {
		w.Put("Orders", "hats", fmt.Sprint(i), `"n":{"N":"`+value+`"}`)
	}
	w.d.Settle()
}

// trim has everything deleted from the log that is applied.
func (w *world) trim() {
	w.t.Helper()
	w.d.Stop()
	w.Trim("Orders")
	w.d = w.Run()
	w.d.Settle()
}

// A log that does not reach back to the begin of the window proves nothing, although both sides may
// be equal: what has changed before its oldest entry is not known. That stays so, also when more
// changes come; another full comparison begins a new window.
func TestSinceOverATrimmedLogIsUnproven(t *testing.T) {
	w := newWorld(t, 911)
	w.d = w.Run()
	w.put(5, "1")
	if x := w.full(audit.Options{}); x.Verdict != report.Equal || x.Items != 5 {
		t.Fatalf("all: %+v", x)
	}
	if x := w.since(0); x.Verdict != report.Equal {
		t.Fatalf("nothing has changed: %+v", x)
	}
	w.put(3, "2")
	w.trim()
	for _, ago := range []time.Duration{0, time.Hour} {
		if x := w.since(ago); x.Verdict != report.Unproven || x.Equal > 0 ||
			!strings.Contains(x.Why, "the log of Orders does not reach back") ||
			!strings.Contains(x.Sentence(), "A full `replicator verify` shows") {
			t.Errorf("since %s: %+v", ago, x)
		}
	}
	w.put(1, "3")
	if x := w.since(0); x.Verdict != report.Unproven {
		t.Errorf("once more: %+v", x)
	}
	if x := w.full(audit.Options{}); x.Verdict != report.Equal {
		t.Fatalf("all again: %+v", x)
	}
	w.put(2, "4")
	if x := w.since(0); x.Verdict != report.Equal || x.Items != 2 {
		t.Errorf("since the second full one: %+v", x)
	}
}

// TestSinceHasWhatWasWrittenBefore: an item that was written just before the command is in no log
// yet, and counts as changed all the same.
func TestSinceHasWhatWasWrittenBefore(t *testing.T) {
	w := newWorld(t, 913)
	w.d = w.Run()
	w.put(3, "1")
	if x := w.full(audit.Options{}); x.Verdict != report.Equal {
		t.Fatalf("all: %+v", x)
	}
	w.Stream.Faults().EmptyPages("", 4) // about a second: no proof comes of it
	w.Put("Orders", "hats", "0", `"n":{"N":"2"}`)
	if x := w.since(0); x.Verdict != report.Equal || x.Items != 1 {
		t.Errorf("%+v", x)
	}
}

// verify --for-cutover notes what changes while it reads, so that trimming behind it does not
// matter; where the log was trimmed before that was noted, it says that it will not serve.
func TestLogIsTrimmedWhileAllIsReadForACutover(t *testing.T) {
	w := newWorld(t, 912)
	w.d = w.Run()
	w.put(5, "1")
	dir := audit.SavedDir(w.Config.Scratch, w.Config.Pipeline, "orders")
	_, s := w.Pair("Orders")
	o := audit.RecordOptions{Dir: dir, Pipeline: w.Config.Pipeline, Strong: true, Along: true}
	r, _, err := audit.Record(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.put(3, "2")
	w.trim()
	if err := r.Along(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	why, err := r.Keep([]report.Table{{Source: "Orders", Verdict: report.Equal}})
	if err != nil || !strings.Contains(why, "the log of Orders does not reach back") {
		t.Errorf("kept: %q, %v", why, err)
	}
	if x := w.since(0); x.Verdict != report.Unproven {
		t.Errorf("since that one: %+v", x)
	}
	if x := w.full(audit.Options{Along: true}); x.Verdict != report.Equal {
		t.Fatalf("all for a cutover: %+v", x)
	}
}
