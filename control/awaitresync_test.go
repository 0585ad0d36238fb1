package control

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestWaitingForAResyncEndsBeforeAnotherGap: while that is open no resync ends. One that the table
// accepts by itself is open for a few looks only.
func TestWaitingForAResyncEndsBeforeAnotherGap(t *testing.T) {
	var open openGaps
	for i := range 5 * gapLooks {
		gaps := 1
		if i%gapLooks == gapLooks-1 {
			gaps = 0
		}
		if err := open.look(gaps, "Orders"); err != nil {
			t.Fatalf("after %d looks: %v", i, err)
		}
	}
	var err error
	for i := 1; err == nil; i++ {
		if err = open.look(1, "Orders"); err != nil && i != gapLooks {
			t.Errorf("%v after %d looks", err, i)
		}
	}
	if class, hint := failure.Of(err); class != failure.Different ||
		!strings.Contains(hint, "`replicator repair --gaps --table Orders`") {
		t.Errorf("class %v, hint %q", class, hint)
	}
}
