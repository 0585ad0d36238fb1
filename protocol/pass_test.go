package protocol

import (
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestEntryRightBehindAFenceIsNotApplied: Rule 12. The fence's own entry is passed, and no other.
func TestEntryRightBehindAFenceIsNotApplied(t *testing.T) {
	p := Pass{Epoch: 3, Fence: &checkpoint.Fence{ID: "f", Seq: 5, Last: 3}}
	for seq, want := range map[uint64]PassStep{3: PassApplies, 5: PassApplies, 6: PassHolds, 7: PassHolds} {
		if got := p.Before(seq); got != want {
			t.Errorf("before entry %d: %d", seq, got)
		}
		if got := p.Next(seq, &checkpoint.Entry{Epoch: 3}); got != want {
			t.Errorf("entry %d: %d", seq, got)
		}
	}
	if p.Fence = nil; p.Before(6) != PassApplies {
		t.Error("it stands although there is no fence")
	}
}

// TestEntryOfALaterOwnerEndsAPass: Rule 2. Entries of commands have epoch 0.
func TestEntryOfALaterOwnerEndsAPass(t *testing.T) {
	p := Pass{Epoch: 3}
	for epoch, want := range map[uint64]PassStep{0: PassApplies, 2: PassApplies, 3: PassApplies, 4: PassEnds} {
		if got := p.Next(9, &checkpoint.Entry{Epoch: epoch}); got != want {
			t.Errorf("entry of epoch %d: %d", epoch, got)
		}
	}
}
