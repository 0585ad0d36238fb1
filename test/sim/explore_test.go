package sim

import (
	"flag"
	"fmt"
	"testing"
)

var everything = flag.Bool("sim.all", false, "enumerate the small world with a fault, and with two preemptions")

// TestAllHistoriesOfASmallWorld enumerates them: with one preemption, or with -sim.all with a fault
// or two preemptions.
func TestAllHistoriesOfASmallWorld(t *testing.T) {
	bounds := []*explorer{{preemptions: 1, limit: 20}}
	if *everything {
		bounds = []*explorer{{faults: 1, limit: 20}, {preemptions: 2, limit: 20}}
	} else if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, x := range bounds {
		t.Run(fmt.Sprintf("faults=%d,preemptions=%d", x.faults, x.preemptions), func(t *testing.T) {
			t.Parallel()
			if v, script := x.all(None, small); v != nil {
				t.Fatalf("%v: %v", script, v)
			}
			if x.ends == 0 {
				t.Errorf("no history of %d ends within %d entries", x.runs, x.limit)
			}
			t.Logf("faults <= %d, preemptions <= %d: %d states, %d histories, %d of them to their end; complete: true",
				x.faults, x.preemptions, len(x.seen), x.runs, x.ends)
		})
	}
}

// TestSmallWorldFindsMutants checks that the enumeration can find something.
func TestSmallWorldFindsMutants(t *testing.T) {
	x := explorer{preemptions: 1, limit: 20}
	if v, _ := x.all(NoContiguousAcks, small); v == nil {
		t.Error("nothing breaks where marks pass what is not durable")
	}
}
