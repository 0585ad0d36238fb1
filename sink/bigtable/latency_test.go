package bigtable

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestLatencyIsMeasuredWithinItsTime: of a Bigtable that is far away with fewer reads, and always
// with one that counts. It writes nothing.
func TestLatencyIsMeasuredWithinItsTime(t *testing.T) {
	c, f := rig(t)
	for name, x := range map[string]struct {
		within time.Duration
		reads  int
	}{
		"near":                      {time.Hour, 21},
		"no time but for one":       {0, 2},
		"that time is over already": {-time.Second, 2},
	} {
		before := f.reads
		took, err := c.Latency(t.Context(), target, 20, x.within)
		if err != nil || took <= 0 {
			t.Errorf("%s: %s, %v", name, took, err)
		}
		if n := f.reads - before; n != x.reads {
			t.Errorf("%s: %d reads, want %d", name, n, x.reads)
		}
	}
	if _, err := c.Latency(t.Context(), "absent", 20, time.Hour); Classify(err) != failure.Missing {
		t.Errorf("of a table that is not there: %v", err)
	}
	if n := f.count(); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}
