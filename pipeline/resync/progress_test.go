package resync

import "testing"

// TestPercentDoesNotSink while items arrive and parts end, where the estimate is too low, and where
// it is too high.
func TestPercentDoesNotSink(t *testing.T) {
	const parts, perPart = 10, 100
	for _, estimate := range []int64{0, 1, 300, parts * perPart, 5000} {
		before := 0.0
		for items := int64(0); items <= parts*perPart; items += 10 {
			p := &Progress{Items: items, EstimatedItems: estimate}
			ended := max(0, int(items-perPart/2)/perPart)
			if p.estimate(ended, parts); p.Percent < before || p.Percent >= 100 {
				t.Errorf("estimate %d: %.1f %% after %.1f %% at %d items", estimate, p.Percent, before, items)
			}
			before = p.Percent
		}
	}
}
