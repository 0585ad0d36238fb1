package render_test

import (
	"testing"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
)

// TestDryRunNamesKindsInWords: the words are those of verify, and a kind counts items: one may lack
// several cells.
func TestDryRunNamesKindsInWords(t *testing.T) {
	r := audit.Repaired{DryRun: true, Tables: []*audit.RepairedTable{{Source: "Orders", Items: 3, Rows: 2,
		Kinds: map[string]int64{"missing_row": 1, "value": 2}}},
		Foreign: []*audit.RepairedForeign{{Target: "orders", Columns: 1}}}
	want := "Orders: 3 items would be looked at, and 2 rows that the differences name: missing rows in 1 item, " +
		"wrong cells in 2 items.\norders: 1 foreign column, left as it is without --delete-foreign --yes."
	if got := render.Repaired(&r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRepairNamesWhatItDid: items that were equal before are written all the same, so a repair does
// not claim that they differed.
func TestRepairNamesWhatItDid(t *testing.T) {
	for want, table := range map[string]*audit.RepairedTable{
		"Orders: 1 item is equal now (1 written, whether they differed or not).": {Items: 1, Repaired: 1, Written: 1},
		"Orders: 3 items are equal now (2 written, whether they differed or not), 1 still different.": {
			Items: 4, Repaired: 3, Written: 2, Different: 1},
	} {
		table.Source = "Orders"
		if got := render.Repaired(&audit.Repaired{Tables: []*audit.RepairedTable{table}}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
