package pipeline_test

import (
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// The owner was killed after it had stored the mark that passed the halt, and before it could say
// that the halt is over; or after it had retired the sink. No change comes that would move a mark.
func TestHaltThatIsOverEndsAtTheNextStart(t *testing.T) {
	for what, halt := range map[string]checkpoint.Halt{
		"the mark has passed it":      {Sink: "bigtable", Seq: 1, Code: "away", Reason: "it was away"},
		"the sink is not there again": {Sink: "archive", Seq: 1, Code: "away", Reason: "it was away"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.createTable("Orders")
			r := w.start("Orders")
			w.put("Orders", "a", "x", `"v":{"N":"1"}`)
			r.settle()
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			r = w.open("Orders")
			l, err := r.queue.Log(t.Context(), "Orders")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.AppendControl(t.Context(), &checkpoint.Control{Halt: &halt, By: "owner"}); err != nil {
				t.Fatal(err)
			}
			r.begin()
			r.settle()
			r.until("the halt is over", func() bool { return len(r.table("Orders").Halts) == 0 })
		})
	}
}
