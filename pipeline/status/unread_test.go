package status

import (
	"slices"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestNotReadyWhileAListedOpenShardIsNotRead, Rule 10: whatever the log holds about a shard, it is
// not read to its end while a listing shows it without one.
func TestNotReadyWhileAListedOpenShardIsNotRead(t *testing.T) {
	const want = "1 shard is not read, although a listing shows no end"
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	s := open(now.UnixMilli(), now.UnixMilli())
	seen := Seen{Source: "Orders", State: s, Now: change.MillisOf(now), ClaimTTL: time.Minute}
	if st := Of(seen); slices.Contains(st.Reasons, want) || st.Shards.Unread != 0 {
		t.Fatalf("%+v: %v", st.Shards, st.Reasons)
	}
	for _, sh := range s.Shards {
		sh.Phase, sh.SeenOpen = checkpoint.PhaseFinished, true
		s.Reindex()
		break
	}
	if st := Of(seen); !slices.Contains(st.Reasons, want) || st.Shards.Unread != 1 {
		t.Errorf("%+v: %v", st.Shards, st.Reasons)
	}
}
