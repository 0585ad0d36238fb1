package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tailrace-cdc/replicator/test/sometimes"
)

var (
	seeds       = flag.Uint64("sim.seeds", 100, "histories to simulate; at most 20 with -short")
	seed        = flag.Uint64("sim.seed", 0, "simulate only this history, and print it")
	mutantSeeds = flag.Uint64("sim.mutants", 0, "histories in which each mutant must be found")
	brief       = flag.Bool("sim.brief", false, "print only the seed that breaks an invariant")
	update      = flag.Bool("sim.update", false, "keep the shortest histories that find the mutants in testdata")
)

// TestHistories simulates the protocol under all that goes wrong.
func TestHistories(t *testing.T) {
	if *seed != 0 {
		w, v := run(newTape(*seed), usual, None, true)
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
	o := usual
	o.counted = sometimes.New(branches...)
	s, v := search(n, o, None)
	switch {
	case v != nil && *brief:
		t.Fatalf("seed %d: %v", s, v)
	case v != nil:
		report(t, s, v)
	case *brief:
		return
	}
	t.Logf("%d histories, which took these branches so often:\n%s", n, o.counted.Table())
	if never := o.counted.Never(); n >= usualSeeds && len(never) > 0 {
		t.Errorf("no history took these branches, so what defends them is not tested:\n%s", strings.Join(never, "\n"))
	}
}

// usualSeeds is how many histories take every branch.
const usualSeeds = 3000

// search runs the histories of the seeds up to n, and returns the lowest that breaks an invariant.
func search(n uint64, o Options, m Mutant) (found uint64, broken *Violation) {
	var next, failed atomic.Uint64
	failed.Store(n + 1)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := next.Add(1); s < failed.Load(); s = next.Add(1) {
				if _, v := run(newTape(s), o, m, false); v != nil {
					mu.Lock()
					if s < failed.Load() {
						failed.Store(s)
						found, broken = s, v
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return found, broken
}

// report prints a seed, the shortest history that breaks the same invariant, and what happens in
// it.
func report(t *testing.T, s uint64, v *Violation) {
	script := shortest(s, v, None)
	w, short := run(replayOf(script), usual, None, true)
	choices, _ := json.Marshal(script)
	t.Fatalf("seed %d: %v\n\nshortest history, %d choices: %s\n%v\n\n%s", s, v, len(script), choices, short, w.Trace())
}

// shortest shortens the history of a seed that breaks an invariant. One that comes to rest after
// all, only later than the shortening waits, is not shortened.
func shortest(s uint64, v *Violation, m Mutant) []int {
	tape := newTape(s)
	run(tape, usual, m, false)
	quick, budget := usual, 1200
	if quick.rest = 300; v.Invariant == "comes to rest" { // such a history takes long
		quick.rest, budget = 2500, 150
	}
	breaks := func(script []int, o Options) bool {
		_, other := run(replayOf(script), o, m, false)
		return other != nil && other.Invariant == v.Invariant
	}
	short := shrink(tape.used, budget, func(script []int) bool { return breaks(script, quick) })
	if !breaks(short, usual) {
		return tape.used
	}
	return short
}

// kept is a history in testdata.
type kept struct {
	Without   string `json:"without,omitempty"` // the defence without which it breaks the invariant
	Invariant string `json:"invariant"`
	Choices   []int  `json:"choices"`
}

// TestKeptHistories replays the histories in testdata: each once broke an invariant, by a fault
// that is mended, or without a defence. It must break none, and still that one without the defence.
func TestKeptHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*.json")
	if err != nil || len(files) < int(mutants)-1 {
		t.Fatal(len(files), "histories", err)
	}
	for _, file := range files {
		var k kept
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &k)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, v := run(replayOf(k.Choices), usual, None, false); v != nil {
			t.Errorf("%s: %v", file, v)
		}
		m := Mutant(slices.Index(names[:], k.Without))
		if k.Without == "" {
			continue
		}
		if _, v := run(replayOf(k.Choices), usual, m, false); v == nil || v.Invariant != k.Invariant {
			t.Errorf("%s, without %s: %v, want %q broken; make mutants UPDATE=1 searches a new one", file, m, v, k.Invariant)
		}
	}
}

// TestMutants takes one defence after the other away: an invariant must break in -sim.mutants
// histories.
func TestMutants(t *testing.T) {
	if *mutantSeeds == 0 {
		t.Skip("make mutants")
	}
	t.Logf("%-32s seeds  invariant", "without")
	for m := None + 1; m < mutants; m++ {
		s, v := search(*mutantSeeds, usual, m)
		if v == nil {
			t.Errorf("%-32s nothing breaks in %d histories", m, *mutantSeeds)
			continue
		}
		t.Logf("%-32s %5d  %s", m, s, v.Invariant)
		if *update {
			keep(t, m, s, v)
		}
	}
	if s, v := search(*mutantSeeds, usual, None); v != nil {
		t.Errorf("seed %d breaks with all defences: %v", s, v)
	}
}

// keep stores the shortest history that finds a mutant.
func keep(t *testing.T, m Mutant, s uint64, v *Violation) {
	b, err := json.Marshal(kept{m.String(), v.Invariant, shortest(s, v, m)})
	if err == nil {
		err = os.WriteFile(filepath.Join("testdata", "histories", fmt.Sprintf("mutant%02d.json", m)), append(b, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
