package checkpoint

import "testing"

// TestReleaseNamesTheNextOwnerUntilAClaim: the state says to whom a log was handed over, also after
// a restart, and any claim ends that.
func TestReleaseNamesTheNextOwnerUntilAClaim(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	w.must(t, &Release{To: "b"})
	for what, s := range map[string]*State{"writer": w.s, "folded": w.l.fold(t), "restored": w.l.restored(t)} {
		if !s.Released || s.ReleasedTo != "b" {
			t.Errorf("%s: released %t to %q", what, s.Released, s.ReleasedTo)
		}
	}
	again, err := decodeState([]byte(stateJSON(w.s)))
	if err != nil || again.ReleasedTo != "b" {
		t.Errorf("stored and read: released to %q, %v", again.ReleasedTo, err)
	}
	w.epoch++
	w.nonce = Nonce{9}
	w.must(t, &Claim{Owner: "c", Reads: Format})
	if w.s.Released || w.s.ReleasedTo != "" || w.s.Owner != "c" || w.s.Reads != Format {
		t.Errorf("claimed: released %t to %q, owner %q reads %d", w.s.Released, w.s.ReleasedTo, w.s.Owner, w.s.Reads)
	}
	w.must(t, &Release{})
	if !w.s.Released || w.s.ReleasedTo != "" {
		t.Errorf("released to nobody: %t, %q", w.s.Released, w.s.ReleasedTo)
	}
}
