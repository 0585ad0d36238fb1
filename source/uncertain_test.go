package source

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// TestUncertainTimeIsTheEarlierOfTwo, Rule 13: while the first Date is far from this machine's
// clock, a reading counts as of the earlier of both. A clock that is days behind makes it no older
// than a quarter of an hour, or all records would look as if they were about to be lost.
func TestUncertainTimeIsTheEarlierOfTwo(t *testing.T) {
	sent := time.Now()
	for ahead, want := range map[time.Duration]time.Duration{
		0: 0, 100 * time.Second: 0, -time.Hour: -time.Hour, 48 * time.Hour: 48*time.Hour - 15*time.Minute,
	} {
		s := &Source{log: zap.NewNop()}
		s.now.Trust(2 * time.Minute)
		requested, err := s.observe(raw.Timing{Sent: sent, Replied: sent, Server: sent.Add(ahead)})
		if off := requested - change.MillisOf(sent.Add(want)); err != nil || off > 0 || off < -10 {
			t.Errorf("a Date %s ahead: the reading is %d ms from %s ahead: %v", ahead, off, want, err)
		}
	}
}
