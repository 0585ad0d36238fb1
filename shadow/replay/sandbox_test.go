package replay_test

import (
	"flag"
	"testing"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
)

// histories is how many histories of an application are replayed.
var histories = flag.Uint64("replay.seeds", 12, "how many histories of an application are replayed")

// TestNoReadIsAFalseAlarm: whatever an application reads of the sandbox, and however late its rows come.
func TestNoReadIsAFalseAlarm(t *testing.T) {
	seeds := *histories
	if testing.Short() {
		seeds = 3
	}
	total := pattern.Replay{}
	for seed := uint64(1); seed <= seeds; seed++ {
		w := newPlace(t, seed, designs...)
		for range 25 {
			var reads []request
			for range 60 {
				switch w.rnd.IntN(4) {
				case 0:
					w.write()
				case 1:
					w.arrive(w.rnd.IntN(len(w.pending) + 1))
				default:
					reads = append(reads, w.read())
				}
			}
			found, s := w.replay(reads)
			for i := range found {
				t.Errorf("seed %d: %+v", seed, found[i])
			}
			for i := range s.Patterns {
				c := &s.Patterns[i]
				if c.Replay == nil || c.Keys != c.Replay.Replayed+c.Replay.Left() || c.Replay.Waiting() != 0 {
					t.Errorf("seed %d, %s: %d keys, %+v", seed, c.Pattern.Text(), c.Keys, c.Replay)
				}
				total.Replayed += c.Replay.Replayed
				total.Differed += c.Replay.Differed
				total.Equal += c.Replay.Equal
				for why, n := range c.Replay.Skipped {
					total.Skip(why, n)
				}
				for why, n := range c.Replay.Undecided {
					total.Leave(why, n)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%+v", total)
}

// TestWhatIsEqualCostsNothing: where all writes have arrived, a read asks for no proof and for no strong
// read, whatever stands beside its items in the rows, and whatever it leaves out of them.
func TestWhatIsEqualCostsNothing(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 3
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		w := newPlace(t, seed, designs...)
		for range 80 {
			w.write()
		}
		w.arrive(len(w.pending))
		for range 20 {
			var reads []request
			for range 20 {
				reads = append(reads, w.read())
			}
			_, s := w.replay(reads)
			for i := range s.Patterns {
				p, r := &s.Patterns[i].Pattern, s.Patterns[i].Replay
				switch {
				case p.Table == "table4": // it keeps expired items
					continue
				case p.Table == "table1" && (p.Limit || p.Paginated): // rows of its index stand beside a page
					continue
				case p.Index != "": // the key of an item does not show whether the index has it
					continue
				}
				if r.Differed != r.Undecided[replay.Refused] {
					t.Fatalf("seed %d: %s: %+v", seed, p.Text(), r)
				}
			}
		}
	}
}
