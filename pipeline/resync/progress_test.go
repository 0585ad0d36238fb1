package resync

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

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

// TestEmptyPartsAreNoProgress: seven of eight parts of a table with one item end at once, without
// it.
func TestEmptyPartsAreNoProgress(t *testing.T) {
	empty, full := checkpoint.CopyMark{Done: true}, checkpoint.CopyMark{Done: true, Items: 5}
	for _, c := range []struct {
		marks []checkpoint.CopyMark
		items int64 // the estimate
		want  float64
	}{
		{[]checkpoint.CopyMark{empty, empty, empty, empty, empty, empty, empty}, 1, 0},
		{[]checkpoint.CopyMark{empty, empty, empty, empty, empty, empty, empty}, 0, 0},
		{[]checkpoint.CopyMark{full, full, full, full}, 0, 50},
		{[]checkpoint.CopyMark{empty, empty, empty, empty, full}, 0, 25},
		{[]checkpoint.CopyMark{empty, full, {Items: 20}}, 50, 50},
		{[]checkpoint.CopyMark{empty, empty, empty, empty, empty, empty, empty, {Items: 3}}, 1, 99},
	} {
		s := checkpoint.NewState()
		s.Copy = &checkpoint.CopyState{Copy: checkpoint.Copy{ID: "c", Parts: 8, Items: c.items},
			Marks: map[int]checkpoint.CopyMark{}}
		for i, m := range c.marks {
			s.Copy.Marks[i] = m
		}
		if got := ProgressOf(s, change.Millis(1000)).Percent; got != c.want {
			t.Errorf("%+v of about %d items: %.1f %%, want %.1f", c.marks, c.items, got, c.want)
		}
		running := newParts(s.Copy)
		live := Progress{Items: running.total().Items, EstimatedItems: c.items}
		if live.estimate(running.ended()); live.Percent != c.want {
			t.Errorf("%+v of about %d items, at their owner: %.1f %%, want %.1f", c.marks, c.items, live.Percent, c.want)
		}
	}
}
