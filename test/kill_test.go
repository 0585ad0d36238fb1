package test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

var (
	chaosSeeds = flag.Uint64("chaos.seeds", 20, "histories with kills to run; 4 with -short")
	chaosSeed  = flag.Int64("chaos.seed", -1, "run only the history of this seed")
)

// seeds returns the seeds of the histories to run.
func seeds() (list []uint64) {
	if *chaosSeed >= 0 {
		return []uint64{uint64(*chaosSeed)}
	}
	n := *chaosSeeds
	if testing.Short() {
		n = min(n, 4)
	}
	for seed := range n {
		list = append(list, seed)
	}
	return list
}

// shot is where a daemon is killed.
type shot struct {
	at   point
	n    int  // at the n-th call since the daemon was started
	hold bool // the call stands there while the daemon dies; else it goes on at the same time
	late bool // it has stood there while the daemon read on and wrote its marks
}

// firstSteps are those of a first start, in their order: log made, row made, log claimed, start decided, issued. Before
// the log is made the target is claimed, before the row is made the mapping is kept.
var firstSteps = []shot{
	{at: logMade, n: 2, hold: true}, {at: rowMade, n: 3, hold: true}, {at: claimed, n: 1, hold: true},
	{at: started, n: decidedCall, hold: true}, {at: issued, n: decidedCall, hold: true},
}

// decidedCall counts the conditional writes into tailrace_state up to the one that says that the start is decided.
const decidedCall = 4

// anyShot is one in the middle of work.
func anyShot(rnd *rand.Rand) shot {
	at := []point{pageRead, beforeWrite, afterWrite}[rnd.IntN(3)]
	s := shot{at: at, n: 1 + rnd.IntN(30), hold: rnd.IntN(2) == 0}
	s.late = s.hold && at != pageRead
	return s
}

// killed starts a daemon and kills it at a shot.
func (w *world) killed(s shot) {
	w.t.Helper()
	p := w.traps.set(s.at, s.n, s.hold)
	d := w.run()
	d.hits(p)
	if s.late {
		d.hits(w.traps.set(point{op: "GetRecords"}, 8, false))
	}
	d.kill()
	p.open()
}

// TestKilledAtAnyMomentLosesNothing kills the daemon with kill -9 two to four times, each time after progress that was
// observed, while an application writes and shards split and rotate. At the end every cell must be right, the log must
// hold each change once, and every cell must have the timestamp that it has where nobody was killed.
func TestKilledAtAnyMomentLosesNothing(t *testing.T) {
	for _, seed := range seeds() {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newWorld(t, seed)
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
				w.killed(s)
			}
			d := w.run()
			d.hits(w.traps.set(afterWrite, 20, false))
			t.Logf("seed %d: %d changes written", seed, a.stop())
			w.Bigtable.Faults.Calm()
			d.settle("Orders")
			d.clean()
			d.stop()
			s, l := w.sides(), w.log("Orders")
			w.exact("Orders", l)
			s.w.Equal("Orders")
			s.replayed("Orders", l)
		})
	}
}
