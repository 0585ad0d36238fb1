package pipeline_test

import (
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// All calls of one table hang; the other one has workers nevertheless.
func TestTableWhoseCallsHangLeavesWorkersToOthers(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("Users")
	w.opts = func(o *pipeline.Options) { o.Lanes, o.Calls = 32, 32 }
	r := w.start("Orders", "Users")
	r.settle()
	w.front.Faults.RefuseRow([]byte("stuck"), codes.Unavailable, -1)
	for i := range 200 {
		w.put("Orders", "stuck", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	r.until("they are in the log", func() bool { return r.table("Orders").Changes == 200 })
	for i := range 40 {
		w.put("Users", fmt.Sprint(i), "x", `"v":{"N":"1"}`)
	}
	r.until("the other table is applied", func() bool { return len(r.stored("Users")) == len(r.projected("Users")) })
	w.front.Faults.Calm()
	r.settle()
	r.equal()
}

// A table that has nothing to do has no goroutine for each of its lanes.
func TestIdleLanesHaveNoWorkers(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	const lanes = 100_000 // other tests run beside, and have goroutines too
	w.opts = func(o *pipeline.Options) { o.Lanes = lanes }
	r := w.start("Orders")
	for i := range 50 {
		w.put("Orders", "a", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	r.settle()
	if n := runtime.NumGoroutine(); n > lanes/2 {
		t.Errorf("%d goroutines", n)
	}
	r.equal()
}
