package sim

import (
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/test/sometimes"
)

const (
	// bulkSeeds is how many histories take every branch of copies by workers.
	bulkSeeds = 1000
	// mutantBulkSeeds is in how many an invariant breaks without any one of their defences.
	mutantBulkSeeds = 3000
)

// TestHistoriesWithWorkers simulates workers that write at any later moment, are suspended, doubled,
// and of an order that was closed.
func TestHistoriesWithWorkers(t *testing.T) {
	if *seed != 0 {
		w, v := run(newTape(*seed), delegating, None, true)
		t.Log("\n" + w.Trace())
		if v != nil {
			t.Fatal(v)
		}
		return
	}
	n := *seeds
	if testing.Short() {
		n = min(n, 20)
	}
	o := delegating
	o.counted = sometimes.New(slices.Concat(branches, workerBranches)...)
	if s, v := search(n, o, None); v != nil {
		w, _ := run(newTape(s), delegating, None, true)
		t.Fatalf("seed %d: %v\n%s", s, v, w.Trace())
	}
	t.Logf("%d histories, which took these branches so often:\n%s", n, o.counted.Table())
	for _, name := range o.counted.Never() {
		if n >= bulkSeeds && slices.Contains(workerBranches, name) {
			t.Errorf("no history took this branch, so what defends it is not tested: %s", name)
		}
	}
}

// TestEachDefenceAgainstWorkersIsNeeded takes one defence after the other away.
func TestEachDefenceAgainstWorkersIsNeeded(t *testing.T) {
	for m := allWorkersDefences + 1; m < workersMutants; m++ {
		o := delegating
		o.workersWithout = m
		s, v := search(mutantBulkSeeds, o, None)
		if v == nil {
			t.Errorf("without defence %d against workers nothing breaks in %d histories", m, mutantBulkSeeds)
			continue
		}
		t.Logf("without defence %d against workers: seed %d, %v", m, s, v)
	}
}
