package report

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/verify"
)

// TestSampleSaysWhatItShows, and no more.
func TestSampleSaysWhatItShows(t *testing.T) {
	for _, c := range []struct {
		items int64
		add   []verify.Verdict
		want  string
		is    Verdict
	}{
		{1000, nil, "S and t: no difference in 1,000 random items: with 95 % confidence, fewer than about 0.3 % " +
			"of all are wrong. " +
			"Rows without an item and foreign cells were not looked for. Seed 7.", Equal},
		{5, nil, "in 5 random items (1,000 were asked for; no more were found): with 95 % confidence, " +
			"fewer than about 60 % of all", Equal},
		{2, nil, "fewer than about 100 % of all", Equal},
		{0, nil, "no item was found to be compared, so nothing is shown", Unproven},
		{1000, []verify.Verdict{{Status: verify.Different}}, "of 1,000 random items, 1 is different and 0", Different},
		{1000, []verify.Verdict{{Status: verify.Unproven}}, "of 1,000 random items, 1 could not be decided", Unproven},
	} {
		table := Table{Source: "S", Target: "t", Items: c.items, Sample: 1000, Seed: 7}
		for i := range c.add {
			table.Add(&c.add[i])
		}
		table.Finish()
		if got := table.Sentence(); !strings.Contains(got, c.want) || table.Verdict != c.is {
			t.Errorf("%d items: %s %q, want %s %q", c.items, table.Verdict, got, c.is, c.want)
		}
	}
}
