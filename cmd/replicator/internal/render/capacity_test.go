package render

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/preflight"
)

// TestProcessorsOfACapacity: a control group may have a part of one.
func TestProcessorsOfACapacity(t *testing.T) {
	for n, want := range map[float64]string{
		0.5: "0.5 processors", 1: "1 processor", 2: "2 processors", 128: "128 processors",
	} {
		r := &preflight.Report{Capacity: &preflight.Capacity{
			Processors: n, Tables: []preflight.Ceiling{{LimitedBy: limit.CPU, Ceilings: map[limit.By]int64{limit.CPU: 1}}},
		}}
		var out strings.Builder
		if err := Capacity(&out, r); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), "on a machine with "+want+", ") {
			t.Errorf("%g: %s", n, out.String())
		}
	}
}
