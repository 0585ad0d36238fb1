package resync

import (
	"context"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify"
)

// TestLeadIsThatOfTheProof: a resync of a whole table takes hours, and a burst of changes may raise meanwhile how far
// versions may be ahead. What it wrote has no guard in the future.
func TestLeadIsThatOfTheProof(t *testing.T) {
	lead := 10 * time.Minute
	w := &Whole{Options: Options{Lead: func() time.Duration { return lead }}}
	proved := change.Millis(0)
	r := &verify.Resyncer{Settler: verify.Settler{
		Prove: func(_ context.Context, t change.Millis) error { proved = t; return nil }, Lead: w.leadMillis(),
	}}
	w.keepLead(&r.Settler)
	lead = time.Hour
	if err := r.Prove(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if proved != 7 || r.Lead != change.Millis(lead.Milliseconds()) {
		t.Errorf("proved %d, the lead is %d", proved, r.Lead)
	}
}
