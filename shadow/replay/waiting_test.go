package replay

import (
	"strconv"
	"testing"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/verify"
)

// TestItemsThatWaitAreBounded: one that waits already takes no further room.
func TestItemsThatWaitAreBounded(t *testing.T) {
	w := newWaiting()
	add := func(i int) bool { return w.add(verify.Candidate{Key: strconv.Itoa(i)}, pattern.Pattern{}) }
	for i := range maxSettling {
		if !add(i) {
			t.Fatalf("item %d finds no room", i)
		}
	}
	if add(maxSettling) || !add(0) {
		t.Error("another item finds room, or the same one finds none")
	}
	if got := len(w.take(atOnce)); got != atOnce || !add(maxSettling) {
		t.Errorf("%d items taken, and no room behind them", got)
	}
}
