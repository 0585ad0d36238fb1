package archiving

import (
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestEventsOfAnOpenIntentAreHeld: they are in no part any more, and their object is not there.
func TestEventsOfAnOpenIntentAreHeld(t *testing.T) {
	w := newWorld(t)
	w.files.hook(func(string) error { return errors.New("away") }, nil)
	r := w.start()
	r.store(w.deleted(0, 3))
	w.until("an open intent", func(s *ledger.State) bool { return len(s.Intents) == 1 && len(s.Parts) == 0 })
	n := 0
	must(t, r.Held(t.Context(), hour0, hour0, func(*transform.Event) { n++ }))
	if n != 3 {
		t.Errorf("the archive holds %d events of 3", n)
	}
}
