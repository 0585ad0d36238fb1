package test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

var (
	chaosSeeds = flag.Uint64("chaos.seeds", 20, "histories with kills to run; at most 2 with -short")
	chaosSeed  = flag.Int64("chaos.seed", -1, "run only the history of this seed")
)

// seeds returns the seeds of the histories to run.
func seeds() (list []uint64) {
	if *chaosSeed >= 0 {
		return []uint64{uint64(*chaosSeed)}
	}
	n := *chaosSeeds
	if testing.Short() {
		n = min(n, 2)
	}
	for seed := range n {
		list = append(list, seed)
	}
	return list
}

// shot is the moment at which a daemon is killed.
type shot struct {
	at   point
	n    int  // at the n-th call since the daemon was started
	hold bool // the call is held while the daemon dies; else it goes on at the same time
	late bool // before the kill, the held call waits while the daemon reads on and stores marks
}

// firstSteps are the steps of a first start in order: log created, row created, log claimed, start
// decided, version reservation written. Before the log is created, the format of the pipeline is
// stored and the target is claimed; the mapping is stored before the row.
var firstSteps = []shot{
	{at: logMade, n: 3, hold: true}, {at: rowMade, n: 4, hold: true}, {at: claimed, n: 1, hold: true},
	{at: started, n: decidedCall, hold: true}, {at: issued, n: decidedCall, hold: true},
}

// decidedCall is the number of the conditional write into tailrace_state that stores that the start
// is decided.
const decidedCall = 5

// anyShot returns a random moment while records are read and applied.
func anyShot(rnd *rand.Rand) shot {
	at := []point{pageRead, beforeWrite, afterWrite}[rnd.IntN(3)]
	s := shot{at: at, n: 1 + rnd.IntN(30), hold: rnd.IntN(2) == 0}
	s.late = s.hold && at != pageRead
	return s
}

// The branches of a kill.
const (
	heldAtKill    = "a call is held while the daemon dies"
	heldWhileRead = "a held call waits while the daemon reads on"
	firstStep     = "a daemon is killed in its first steps"
)

// runUntilKilled starts a daemon and kills it at a shot.
func (w *world) runUntilKilled(s shot) {
	w.t.Helper()
	p := w.traps.set(s.at, s.n, s.hold)
	d := w.run()
	d.untilHit(p)
	if s.late {
		d.untilHit(w.traps.set(point{op: "GetRecords"}, 8, false))
	}
	d.kill()
	p.open()
	w.traps.chances.ReachedIf(s.hold, heldAtKill)
	w.traps.chances.ReachedIf(s.late, heldWhileRead)
	w.traps.chances.ReachedIf(slices.Contains(firstSteps, s), firstStep)
}

// TestKilledAtAnyMomentLosesNothing kills the daemon with SIGKILL two to four times, each time
// after observed progress, while an application writes and shards split and rotate. At the end
// every cell must be equal to the source, the log must hold each change once, and every cell must
// have the timestamp that a run without kills gives it.
func TestKilledAtAnyMomentLosesNothing(t *testing.T) {
	t.Parallel()
	all := seeds()
	c := newChances(t, len(all), 20, []string{heldAtKill, heldWhileRead, firstStep}, "log claimed")
	for _, seed := range all {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.traps.chances = c
			if seed%4 == 1 {
				w.shareRows()
			}
			w.prepare("Orders")
			rnd := rand.New(rand.NewPCG(seed, 1))
			var shots []shot
			if seed%2 == 0 {
				shots = append(shots, firstSteps[seed/2%5])
			}
			for range 2 + rnd.IntN(2) {
				shots = append(shots, anyShot(rnd))
			}
			if seed%3 == 0 {
				w.Bigtable.Faults.Random(bigtable.Odds{Refuse: .03, Ambiguous: .03, Late: .03})
				w.Stream.Faults().HideChildren(300 * time.Millisecond)
			}
			t.Logf("seed %d, kills at %+v", seed, shots)
			a := w.writer("Orders", seed)
			a.write(30)
			a.start()
			for _, s := range shots {
				w.runUntilKilled(s)
			}
			d := w.run()
			d.untilHit(w.traps.set(afterWrite, 20, false))
			t.Logf("seed %d: %d changes written", seed, a.stop())
			w.Bigtable.Faults.Calm()
			d.settle("Orders")
			d.checkClean()
			d.stop()
			s, l := w.openPair(), w.readLog("Orders")
			w.logIsExact("Orders", l)
			s.w.Equal("Orders")
			s.replayIsEqual("Orders", l)
		})
	}
}
