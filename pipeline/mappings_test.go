package pipeline

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
)

// TestMappingCopyIsAboveTheMappingBefore: versions may run ahead of time, and the copy must replace every row that the
// mapping before wrote.
func TestMappingCopyIsAboveTheMappingBefore(t *testing.T) {
	const now change.Millis = 1_000_000_000
	v := change.Version(now)
	for _, above := range []change.Version{0, v - 1e6, v, v + 600_000} {
		begin := beginOfMappingCopy(&checkpoint.Switch{Above: above}, now)
		if begin < now {
			t.Errorf("above %d: begins at %d, before the switch at %d", above, begin, now)
		}
		if v := apply.ResyncVersion(begin, 0); v <= above {
			t.Errorf("above %d: the first page has version %d", above, v)
		}
	}
}
