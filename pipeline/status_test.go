package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

func TestLowRetentionIsRed(t *testing.T) {
	for behind, red := range map[time.Duration]bool{17 * time.Hour: false, 19 * time.Hour: true} {
		now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).UnixMilli()
		s := checkpoint.NewState()
		s.Owner, s.Date = "a", now
		s.Streams = []*checkpoint.Stream{{ARN: "arn", Date: now - behind.Milliseconds()}}
		s.Listed = now
		s.Shards["s"] = &checkpoint.Shard{ID: "s", Stream: "arn", Phase: checkpoint.Open, Through: now - behind.Milliseconds()}
		st := StatusOf(Seen{State: s, Now: now, ClaimTTL: time.Minute})
		if got := strings.Contains(strings.Join(st.Reasons, "; "), "unread changes are lost in"); got != red {
			t.Errorf("%v behind: reasons %q, want a word about it: %v", behind, st.Reasons, red)
		}
	}
}
