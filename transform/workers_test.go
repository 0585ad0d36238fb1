package transform

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

// TestMappingsThatWorkersCannotCopy: each for its reason, and whether or not the rows are the
// first.
func TestMappingsThatWorkersCannotCopy(t *testing.T) {
	const head = "families: {d: {}, h: {max_versions: 5}, k: {max_versions: 5, removed: keep}, a: {max_age: 1h}}\n"
	rule := func(more string) string { return head + "rules:\n- {name: r, row: '{pk}#{sk}', " + more + "}\n" }
	for name, c := range map[string]struct {
		text         string
		first, later Unfit
	}{
		"plain":       {rule(`cells: [{attr: v, to: "d:v"}]`), "", ""},
		"a history":   {rule(`cells: [{attr: v, to: "h:v"}]`), UnfitReads, UnfitReads},
		"an age":      {rule(`cells: [{attr: v, to: "a:v"}]`), UnfitReads, UnfitReads},
		"kept":        {rule(`cells: [{attr: v, to: "d:v"}], on_ttl_expiry: keep`), UnfitOutlives, UnfitOutlives},
		"a tombstone": {rule(`cells: [{attr: v, to: "d:v"}], on_remove: tombstone`), "", ""}, // which ends histories alone
		"a secret":    {"secrets: {k1: hunter2}\n" + rule(`cells: [{attr: v, to: "d:v"}]`), UnfitSecrets, UnfitSecrets},
		"a row by value": {
			head + "rules:\n- {name: r, row: '{pk}#{sk}#{v}', cells: [{attr: w, to: \"d:w\"}]}\n", "", UnfitMoves,
		},
		"a whole row": {
			head + "rules:\n- {name: r, match: {pk: \"{p}\", sk: V}, row: '{p}', cells: [{attr: v, to: \"d:v\"}], " +
				"on_remove: row, acknowledged: [cascade]}\n", UnfitWipes, UnfitWipes,
		},
	} {
		p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, c.text)
		if first, later := p.Unfit(true), p.Unfit(false); first != c.first || later != c.later {
			t.Errorf("%s: %q and %q, want %q and %q", name, first, later, c.first, c.later)
		}
		if u := p.Unfit(false); (u.Why() == "") != (u == "") {
			t.Errorf("%s: %q has the reason %q", name, u, u.Why())
		}
	}
}

// TestWorkersReadNoRow: with every mapping that they may copy with, no item needs one that is read.
func TestWorkersReadNoRow(t *testing.T) {
	fit := 0
	eachScenario(t, func(t *rapid.T, p *Program, s scenario, h history) {
		for _, first := range []bool{true, false} {
			if p.Unfit(first) != "" {
				continue
			}
			fit++
			for key, item := range h.items {
				r := resyncOf(t, p, key, item, late)
				if r.First = first; r.Item == nil {
					continue
				}
				rows, err := p.RowsToRead(new(change.Decoder), r)
				if err == nil && len(rows) > 0 {
					t.Fatalf("first %t: rows %v of item %s are to be read", first, rows, r.Item)
				}
			}
		}
	})
	if fit == 0 {
		t.Error("no mapping is one that workers may copy with")
	}
}
