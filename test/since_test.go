package test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/verify/report"
)

// since runs `verify --since` and returns its exit code and the result of its only table.
func (d *daemon) since(when string) (int, report.Table) {
	w := d.w
	w.t.Helper()
	r := d.hastened("verify", "--since", when, "--json")
	var found struct{ Tables []report.Table }
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || len(found.Tables) != 1 {
		w.t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	return r.code, found.Tables[0]
}

// TestVerifySinceComparesOnlyWhatHasChanged: items that have changed since the last full
// comparison, rows that an item has left since, and what was not equal then; nothing else. What is
// equal once is not compared again.
func TestVerifySinceComparesOnlyWhatHasChanged(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t, 741)
	w.write("orders.yaml", `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}#{place}"
  cells: [{attrs: all, except: [pk, sk, place], to: "d:{attr}"}]
`)
	w.tables = []string{"{source: Orders, target: orders, mapping: orders.yaml, backfill: none}"}
	w.prepare("Orders")
	put := func(sk, place, n string) {
		w.Put("Orders", "hats", sk, `"place":{"S":"`+place+`"},"n":{"N":"`+n+`"}`)
	}
	for _, sk := range []string{"fedora", "beret", "cap", "bowler"} {
		put(sk, "a", "1")
	}
	d := w.run()
	d.settle("Orders")
	if code, x := d.since("last"); code != 4 || x.Verdict != report.Unproven || !strings.Contains(x.Why, "no full comp") {
		t.Errorf("without a full one: exit %d, %+v", code, x)
	}
	w.plant("Orders", "hats#fedora#a", setCell("n", "2"))
	w.plant("Orders", "nobody's", setCell("n", "4"))
	if r := d.hastened("verify"); r.code != 4 {
		t.Errorf("a wrong and a foreign cell: exit %d, %s%s", r.code, r.out, r.err)
	}
	w.plant("Orders", "hats#cap#a", setCell("n", "7")) // not found by what follows: the item does not change
	put("beret", "b", "2")
	put("new", "a", "1")
	w.Delete("Orders", "hats", "bowler")
	d.settle("Orders")
	w.plant("Orders", "hats#beret#a", func(m *cloud.Mutation) { m.Set("d", "n", 1000, []byte("1")) })
	code, x := d.since("last")
	if code != 4 || x.Different != 2 || x.Foreign != 1 || x.Items != 4 || x.Equal != 2 {
		t.Errorf("a wrong cell and one in a row that its item has left: exit %d, %+v", code, x)
	}
	w.plant("Orders", "nobody's", func(m *cloud.Mutation) { m.DeleteRow() })
	w.plant("Orders", "hats#beret#a", func(m *cloud.Mutation) { m.DeleteCellsInColumn("d", "n") })
	put("fedora", "a", "3")
	d.settle("Orders")
	r := d.hastened("verify", "--since", "last")
	if r.code != 0 || !strings.Contains(r.out, "the 4 items that have changed since") ||
		!strings.Contains(r.out, "unless something else than the replicator has written to orders") {
		t.Errorf("equal: exit %d, %s%s", r.code, r.out, r.err)
	}
	if code, x := d.since("last"); code != 0 || x.Items != 0 || !x.Since.After(x.Full) {
		t.Errorf("once more: exit %d, %+v", code, x)
	}
	if code, x := d.since("1h"); code != 4 || x.Different != 1 || x.Items != 5 {
		t.Errorf("all that was written in the last hour: exit %d, %+v", code, x)
	}
	put("cap", "a", "8")
	d.settle("Orders")
	w.Clock.Advance(90 * time.Second) // so that a resync finds the item cool
	d.settle("Orders")
	w.refused(2, "is not a time", "verify", "--since", "tomorrow")
	w.write("keys.jsonl", `{"pk":"hats","sk":"cap"}`)
	for _, args := range [][]string{
		{"verify"}, {"resync", "--table", "Orders", "--keys", "keys.jsonl", "--wait"},
		{"verify", "--since", "last"}, // a request does not count here, but for a cutover it does
		{"resync", "--table", "Orders", "--wait"},
	} {
		if r := d.hastened(args...); r.code != 0 {
			t.Fatalf("%v: exit %d, %s%s", args, r.code, r.out, r.err)
		}
	}
	if code, x := d.since("last"); code != 4 || !strings.Contains(x.Why, "full one began before a resync of Orders") {
		t.Errorf("after a resync of the whole table: exit %d, %+v", code, x)
	}
	d.stop()
	w.Equal("Orders")
}
