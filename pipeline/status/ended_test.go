package status

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestNothingIsUnreadOfAStreamThatEnded: a deleted table that is read to its end is not late the
// day after, and loses nothing.
func TestNothingIsUnreadOfAStreamThatEnded(t *testing.T) {
	at := provokedAt.Add(-19 * time.Hour)
	of := func(spoil func(s *checkpoint.State)) Table {
		s := open(at.UnixMilli(), at.UnixMilli())
		ended(s)
		spoil(s)
		s.Reindex()
		st := Of(Seen{Source: "Orders", State: s, Now: change.MillisOf(provokedAt), ClaimTTL: time.Minute, Carried: true})
		st.Vanish()
		return st
	}
	if st := of(func(*checkpoint.State) {}); !st.Ended || st.Retention != -1 || len(st.Why) != 1 || !st.Has(WhyVanished) {
		t.Errorf("ended %v, retention %v, not ready because %+v", st.Ended, st.Retention, st.Why)
	}
	st := of(func(s *checkpoint.State) { s.Shards["s"].Phase = checkpoint.PhaseOpen })
	if st.Ended || st.Retention < 0 || !st.Has(WhyLowRetention) || !st.Has(WhyLateRead) {
		t.Errorf("with a shard that is open: ended %v, retention %v, not ready because %+v", st.Ended, st.Retention, st.Why)
	}
}
