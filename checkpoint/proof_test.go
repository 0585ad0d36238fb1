package checkpoint

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestProofWaitsForTheSinks: what is read is proved to be applied only once the sinks have passed
// the entry that was the newest when it was read.
func TestProofWaitsForTheSinks(t *testing.T) {
	var p Proof
	mark := uint64(0)
	passed := func(entry uint64) bool { return entry <= mark }
	for i, c := range []struct {
		mark, entry uint64
		read, want  change.Millis
	}{
		{5, 7, 100, 0},   // the sinks lack 6 and 7
		{6, 8, 200, 0},   // and while they do, no later time replaces the first
		{7, 9, 300, 100}, // they passed 7
		{8, 9, 400, 100},
		{9, 9, 500, 500}, // idle
		{9, 9, 0, 500},   // a shard without a heartbeat: what was proved stays so
		{9, 9, 600, 600},
	} {
		mark = c.mark
		p.Note(1000, 0, c.read, c.entry, passed)
		if got := p.Applied(passed); got != c.want || p.Read != c.read {
			t.Errorf("look %d: applied %d, want %d; read %d", i, got, c.want, p.Read)
		}
	}
}
