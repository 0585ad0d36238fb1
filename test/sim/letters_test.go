package sim

import (
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/test/sometimes"
)

const (
	// letteredSeeds is how many histories take every branch of the dead letters.
	letteredSeeds = 1000
	// mutantLetteredSeeds is in how many an invariant breaks without any one of their defences.
	mutantLetteredSeeds = 3000
)

// TestHistoriesWithDeadLetters simulates refused changes, the letters behind them, and retries.
func TestHistoriesWithDeadLetters(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 20)
	}
	o := lettered
	o.counted = sometimes.New(slices.Concat(branches, letterBranches)...)
	if s, v := search(n, o, None); v != nil {
		w, _ := run(newTape(s), lettered, None, true)
		t.Fatalf("seed %d: %v\n%s", s, v, w.Trace())
	}
	t.Logf("%d histories, which took these branches so often:\n%s", n, o.counted.Table())
	for _, name := range o.counted.Never() {
		if n >= letteredSeeds && slices.Contains(letterBranches, name) {
			t.Errorf("no history took this branch, so what defends it is not tested: %s", name)
		}
	}
}

// TestEachDefenceOfLettersIsNeeded takes one defence after the other away.
func TestEachDefenceOfLettersIsNeeded(t *testing.T) {
	for m := allLetterDefences + 1; m < lettersMutants; m++ {
		o := lettered
		o.lettersWithout = m
		s, v := search(mutantLetteredSeeds, o, None)
		if v == nil {
			t.Errorf("without defence %d of the dead letters nothing breaks in %d histories", m, mutantLetteredSeeds)
			continue
		}
		t.Logf("without defence %d of the dead letters: seed %d, %v", m, s, v)
	}
}
