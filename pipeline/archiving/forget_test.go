package archiving

import (
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// TestStateForgetsWhileObjectsAreBuilt: records of later days are stored while objects of the days
// before are built, and the state drops what those cover. The race detector finds a map that both
// use.
func TestStateForgetsWhileObjectsAreBuilt(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	for day := range 12 {
		r.store(w.deleted(day*40, 20))
	}
	w.until("all are in objects", func(s *ledger.State) bool { return len(s.Parts)+len(s.Intents) == 0 })
	w.check(r.closed(11 * 40))
}
