package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/test/sometimes"
)

// bulkSeeds is how many histories take every branch of copies by workers.
const bulkSeeds = 1000

// withoutOf are the options of histories without a defence against workers. What is written too
// late must do harm there: to rows behind a fence, or to what readers get.
func withoutOf(m workersMutant) Options {
	o := delegating
	o.workersWithout, o.afterClosed = m, m != noNote
	return o
}

// TestHistoriesWithWorkers simulates workers that write at any later moment, are suspended,
// doubled, and of an order that was closed.
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

// TestKeptHistoriesWithWorkers replays the histories in testdata: each breaks an invariant without
// one defence against workers, and none with all of them.
func TestKeptHistoriesWithWorkers(t *testing.T) {
	for m := allWorkersDefences + 1; m < workersMutants; m++ {
		var k kept
		b, err := os.ReadFile(workersFile(m))
		if err == nil {
			err = json.Unmarshal(b, &k)
		}
		if err != nil {
			t.Errorf("without %s: %v; make mutants UPDATE=1 searches a history", workersDefences[m], err)
			continue
		}
		if _, v := run(replayOf(k.Choices), delegating, None, false); v != nil {
			t.Errorf("%s: %v", workersFile(m), v)
		}
		if _, v := run(replayOf(k.Choices), withoutOf(m), None, false); v == nil || v.Invariant != k.Invariant {
			t.Errorf("without %s: %v, want %q broken; make mutants UPDATE=1 searches a new history", workersDefences[m], v,
				k.Invariant)
		}
	}
}

// TestEachDefenceAgainstWorkersIsNeeded takes one defence after the other away: an invariant must
// break in -sim.mutants histories, or ten times as many where it is rare.
func TestEachDefenceAgainstWorkersIsNeeded(t *testing.T) {
	if *mutantSeeds == 0 {
		t.Skip("make mutants")
	}
	for m := allWorkersDefences + 1; m < workersMutants; m++ {
		s, v := search(10**mutantSeeds, withoutOf(m), None)
		if v == nil {
			t.Errorf("without %s nothing breaks", workersDefences[m])
			continue
		}
		t.Logf("%-48s %5d  %s", workersDefences[m], s, v.Invariant)
		if *update {
			keepWorkers(t, m, s, v)
		}
	}
}

// workersFile is where the history is that finds a mutant.
func workersFile(m workersMutant) string {
	return filepath.Join("testdata", "workers", fmt.Sprintf("mutant%d.json", m))
}

// keepWorkers stores a short history that finds a mutant.
func keepWorkers(t *testing.T, m workersMutant, s uint64, v *Violation) {
	tape := newTape(s)
	run(tape, withoutOf(m), None, false)
	short := shrink(tape.used, 600, func(script []int) bool {
		_, other := run(replayOf(script), withoutOf(m), None, false)
		if other == nil || other.Invariant != v.Invariant {
			return false
		}
		_, sound := run(replayOf(script), delegating, None, false)
		return sound == nil
	})
	b, err := json.Marshal(kept{workersDefences[m], v.Invariant, short})
	if err == nil {
		err = os.WriteFile(workersFile(m), append(b, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
