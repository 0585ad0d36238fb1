package pipeline_test

import "testing"

// TestDroppedLetterStaysDroppedAfterAReplay (attack 76): the mark cannot pass a change that waits
// for Bigtable, so the refused change behind it is replayed by the next life. It is neither a
// letter again nor in the way of the item's next change.
func TestDroppedLetterStaysDroppedAfterAReplay(t *testing.T) {
	w := newWorld(t)
	w.mapping = `
families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attr: v, to: "d:v", as: int64}]
`
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "x", `"v":{"N":"1"}`)
	r.settle()
	w.front.Faults.Outage(0)
	w.put("Orders", "a", "x", `"v":{"N":"2"}`)
	w.put("Orders", "b", "x", `"v":{"S":"many"}`)
	r.until("the refused change is a letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	if err := r.letters("Orders").Drop(t.Context(), r.letter("Orders", 0).ID); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.front.Faults.Recover()
	r = w.start("Orders")
	w.put("Orders", "b", "x", `"v":{"N":"3"}`)
	r.settle()
	if st := r.table("Orders"); st.DeadLetters != 0 {
		t.Errorf("%d dead letters: the dropped one came back", st.DeadLetters)
	}
	for _, row := range []string{"a#x", "b#x"} {
		if !r.has(row) {
			t.Errorf("row %s is missing", row)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
