package replay_test

import (
	"testing"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
)

// TestNoReadIsAFalseAlarm: whatever an application reads of the sandbox, and however late its rows come.
func TestNoReadIsAFalseAlarm(t *testing.T) {
	seeds := uint64(12)
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
