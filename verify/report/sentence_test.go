package report

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/verify"
)

// TestSentencesCountLikePeople: one item is, two are, and 20,000 have a comma.
func TestSentencesCountLikePeople(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		table Table
		want  string
	}{
		{Table{Verdict: Different, Different: 1, Refused: 2, Foreign: 1},
			"S and t differ: 1 item is different, 2 items are refused by the mapping, 1 cell is foreign."},
		{Table{Verdict: Different, Different: 20_000, Refused: 1},
			"S and t differ: 20,000 items are different, 1 item is refused by the mapping."},
		{Table{Verdict: Unproven, Unproven: 1}, "but 1 item or cell could not be decided."},
		{Table{Verdict: Equal, Items: 1, Rows: 2, Cells: 1, Began: at},
			"S and t are equal: 1 item, 2 rows, 1 cell, each item as of a moment of its own since 2026-01-02 03:04:05 UTC."},
		{Table{Verdict: Equal, Items: 1, Since: at}, "S and t: the one item that has changed since 2026-01-02 03:04:05 UTC " +
			"is equal. The others were not compared."},
		{Table{Verdict: Equal, Items: 2, Since: at, Full: at}, "the 2 items that have changed since 2026-01-02 03:04:05 " +
			"UTC, or were not equal then, are equal; with the full"},
		{Table{Verdict: Equal, Since: at}, "no item has changed since 2026-01-02 03:04:05 UTC, so none was compared."},
		{Table{Verdict: Equal, Since: at, Full: at}, "no item has changed since 2026-01-02 03:04:05 UTC, and all were " +
			"equal then: with the full comparison of 2026-01-02 03:04:05 UTC all are, unless"},
		{Table{Verdict: Different, Sample: 1, Items: 1, Different: 1}, "of 1 random item, 1 is different and 0 are refused"},
		{Table{Verdict: Equal, Sample: 2, Items: 1}, "in 1 random item (2 were asked for; no more were found)"},
	} {
		c.table.Source, c.table.Target = "S", "t"
		if got := c.table.Sentence(); !strings.Contains(got, c.want) {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	hot := verify.Resynced{Hot: 1}
	if _, why := hot.Healed(false); why != "1 item is hot: newer writes keep differences for a while" {
		t.Error(why)
	}
}
