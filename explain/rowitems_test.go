package explain_test

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/explain"
)

// oneItem returns a world with a row of class R for each item, and one item in it.
func oneItem(t *testing.T, seed uint64) *world {
	t.Helper()
	t.Parallel()
	w := &world{daemontest.New(t, seed), t}
	w.Write("orders.yaml", `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attr: n, to: "d:n", as: int64}]
`)
	w.Configure("{source: Orders, target: orders, mapping: orders.yaml, backfill: none}")
	w.Prepare("Orders")
	w.Put("Orders", "hats", "a", `"n":{"N":"1"}`)
	return w
}

// verdicts explains an item by its key and by its row.
func (w *world) verdicts(sk string) (byKey *explain.Item, byRow *explain.Row) {
	w.t.Helper()
	var err error
	w.While("the item is explained", func() { byKey, err = w.explainer().Key(w.t.Context(), "pk=hats,sk="+sk) })
	if err == nil {
		w.While("the row is explained", func() { byRow, err = w.explainer().Row(w.t.Context(), []byte("hats#"+sk)) })
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return byKey, byRow
}

// TestChangeBehindAFenceIsPending: behind a fence a proof shows that everything is in the log, and
// not that it is in Bigtable. The item and its row are behind, and nothing has to be repaired.
func TestChangeBehindAFenceIsPending(t *testing.T) {
	w := oneItem(t, 954)
	w.Run().Settle()
	order := checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: "cut"}}
	if _, err := w.Log("Orders").Append(t.Context(), "fence", order); err != nil {
		t.Fatal(err)
	}
	w.Delete("Orders", "hats", "a")
	byKey, byRow := w.verdicts("a")
	const want = "the row is 1 change behind, and nothing is applied: table Orders is fenced for a cutover."
	if v := byKey.Verdict; v.Status != explain.Behind || v.Sentence != want ||
		!strings.Contains(v.Next, "cutover --undo") {
		t.Errorf("by key: %+v", v)
	}
	if changes := byKey.Log.Entries; len(changes) != 2 || changes[0].BehindFence || !changes[1].BehindFence {
		t.Errorf("changes: %+v", changes)
	}
	if v := byRow.Verdict; v.Status != explain.Behind || !strings.Contains(v.Next, "cutover --undo") ||
		len(byRow.Items) != 1 || byRow.Items[0].Verdict.Sentence != want {
		t.Errorf("by row: %+v, %+v", v, byRow.Items)
	}
}

// TestRowNamesTheLettersOfItsItems: of an item whose first change was refused there is no row, and
// the row's key names it. The row of an item whose next change was refused names its letter, too.
func TestRowNamesTheLettersOfItsItems(t *testing.T) {
	w := oneItem(t, 955)
	d := w.Run()
	d.Settle()
	w.Put("Orders", "hats", "a", `"n":{"S":"none"}`)
	w.Put("Orders", "hats", "b", `"n":{"S":"none"}`)
	w.Until("both are letters", func() bool { return d.Table("Orders").DeadLetters == 2 })
	for _, sk := range []string{"a", "b"} {
		byKey, byRow := w.verdicts(sk)
		if len(byKey.Letters) != 1 || len(byRow.Items) != 1 || byRow.Missing != (sk == "b") {
			t.Fatalf("item %s: %+v, %+v", sk, byKey, byRow)
		}
		item, retry := byRow.Items[0], "replicator dlq retry "+byKey.Letters[0].ID
		if item.ByKey != byRow.Missing || item.KeyHash != byKey.KeyHash || byRow.Verdict.Status != explain.Refused {
			t.Errorf("item %s: %+v", sk, byRow)
		}
		for _, v := range []explain.Verdict{byKey.Verdict, byRow.Verdict, item.Verdict} {
			if !strings.Contains(v.Next, retry) {
				t.Errorf("item %s: %q, next: %q", sk, v.Sentence, v.Next)
			}
		}
		for _, v := range []explain.Verdict{byKey.Verdict, item.Verdict} {
			if !strings.HasPrefix(v.Sentence, "refused: rule item takes the item, and cannot write it: column d:n: ") ||
				!strings.Contains(v.Sentence, "`replicator dlq show "+byKey.Letters[0].ID+"`") {
				t.Errorf("item %s: %q", sk, v.Sentence)
			}
		}
	}
	if _, byRow := w.verdicts("nowhere"); !byRow.Missing || byRow.Verdict.Status != explain.Equal {
		t.Errorf("no such item: %+v", byRow.Verdict)
	}
}
