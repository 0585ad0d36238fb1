package pipeline_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// TestProbesFollowTheTablesAndTheQueue: a rollout waits for every table's state, and a queue that
// cannot store is a reason to restart the process.
func TestProbesFollowTheTablesAndTheQueue(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.open("Orders")
	if err := r.p.Started(); err == nil || !strings.Contains(err.Error(), "Orders") {
		t.Errorf("started before it runs: %v, want an error that names the table", err)
	}
	r.begin()
	r.until("the table's state is loaded", func() bool { return r.p.Started() == nil })
	r.settle()
	r.until("a pipeline at work is live", func() bool { return r.p.Live() == nil })
	if err := r.stop(); err != nil { // stop closes the queue, too
		t.Fatal(err)
	}
	if err := r.p.Live(); err == nil || !strings.Contains(err.Error(), "queue") {
		t.Errorf("live without its queue: %v", err)
	}
	if unsaved := r.p.Unsaved(); len(unsaved) > 0 {
		t.Errorf("unsaved after a drain: %v", unsaved)
	}
}

// TestTableThatCannotDrainInTimeIsUnsaved: the marks in the log do not cover what was applied last.
// A process that was held up may still store them, when both of its time-outs are over; then
// nothing is unsaved.
func TestTableThatCannotDrainInTimeIsUnsaved(t *testing.T) {
	w := newWorld(t)
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Millisecond }
	w.createTable("Orders")
	r := w.start("Orders")
	w.front.Faults.RefuseRow([]byte("stuck"), codes.Unavailable, -1)
	w.put("Orders", "stuck", "s", `"a":{"N":"1"}`)
	r.until("the change is in the log", func() bool { return r.table("Orders").Changes == 1 })
	_ = r.stop()
	want := []string{"Orders"}
	if w.logged.FilterMessage("released the log").FilterFieldKey("drained").Len() > 0 {
		want = nil
	}
	if unsaved := r.p.Unsaved(); !slices.Equal(unsaved, want) {
		t.Errorf("unsaved: %v, want %v", unsaved, want)
	}
	w.front.Faults.Calm()
}
