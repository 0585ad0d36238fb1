package test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// moving is a mapping in which items share a row, and one of their rows depends on an attribute.
const moving = `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]
  index:
  - {name: by_text, row: "by#{text}#{p}#{s}", cells: [{attr: a, to: "d:a"}]}
`

// moveRows gives Orders the mapping above.
func (w *world) moveRows() {
	w.t.Helper()
	w.shared = true
	w.write("orders.yaml", moving)
	w.tables = []string{"{source: Orders, target: orders, mapping: orders.yaml, backfill: none}"}
}

// apply writes an item to Bigtable as a change with a version would.
func (s *sides) apply(pk, sk, attrs string, v change.Version) {
	s.w.t.Helper()
	keys := fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk)
	c := &change.Change{Op: change.Insert, Version: v, Keys: []byte(keys), KeyHash: change.HashKey([]byte(keys)),
		New: []byte(strings.TrimSuffix(keys, "}") + "," + attrs + "}")}
	var w transform.Write
	if err := s.compile("Orders").Change(new(change.Decoder), c, &w); err != nil {
		s.w.t.Fatal(err)
	}
	s.write(&w)
}

func (s *sides) write(w *transform.Write) {
	s.w.t.Helper()
	s.sink.Declare("orders", []string{"d"})
	if err := s.sink.Apply(s.w.t.Context(), "orders", w); err != nil {
		s.w.t.Fatal(err)
	}
}

// plant sets a cell behind the replicator's back.
func (s *sides) plant(row, qualifier, value string, at time.Time) {
	s.w.t.Helper()
	of := transform.Item{Guard: guard.Qualifier("x", "x", []byte(row)), Pipeline: "x", Table: "x", Key: []byte(row)}
	s.write(&transform.Write{Item: of, Version: change.Version(at.UnixMilli()), Rows: []transform.Row{{
		Key: []byte(row), Class: transform.ClassK,
		Cells: []transform.Cell{{Family: "d", Qualifier: []byte(qualifier), Value: []byte(value)}},
	}}})
	s.remove(row, bigtable.Cell{Family: transform.LiveFamily, Qualifier: of.Guard[:], Time: at})
}

// remove removes cells behind the replicator's back.
func (s *sides) remove(row string, cells ...bigtable.Cell) {
	s.w.t.Helper()
	if err := s.sink.DeleteCells(s.w.t.Context(), "orders", []byte(row), cells); err != nil {
		s.w.t.Fatal(err)
	}
}

// settled settles items of Orders, whose stream is applied, and writes their differences to a file.
func (s *sides) settled(file string, rows map[string][]string) map[string]verify.Status {
	s.w.t.Helper()
	program := s.compile("Orders")
	settler := verify.Settler{
		Tables: []verify.Table{{Program: program, Parts: 1}}, Target: verify.NewTarget(s.sink, "orders", program),
		ReadItems: s.src.ReadItems, Prove: func(context.Context, change.Millis) error { return nil },
		Now: func() change.Millis { return change.MillisOf(s.w.Clock.Now()) }, Lead: 60_000, Cells: 10,
	}
	var candidates []verify.Candidate
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		c := verify.Candidate{Key: key}
		for _, row := range rows[key] {
			c.Rows = append(c.Rows, []byte(row))
		}
		candidates = append(candidates, c)
	}
	verdicts, err := settler.Settle(s.w.t.Context(), candidates)
	if err != nil {
		s.w.t.Fatal(err)
	}
	found := map[string]verify.Status{}
	var lines bytes.Buffer
	for i := range verdicts {
		found[verdicts[i].Key] = verdicts[i].Status
		if err := report.OfItem("Orders", "orders", &verdicts[i]).Write(&lines); err != nil {
			s.w.t.Fatal(err)
		}
	}
	ghost := verify.Open{Kind: verify.Foreign, Row: []byte("nobody"), Family: "d", Qualifier: []byte("x")}
	if err := report.OfCell("orders", &ghost).Write(&lines); err != nil {
		s.w.t.Fatal(err)
	}
	s.w.write(file, lines.String())
	return found
}

// hastened runs a command while the sandbox's time goes on, no faster than the daemon follows: a
// command takes an owner that is silent for a while for dead.
func (d *daemon) hastened(args ...string) result {
	d.w.t.Helper()
	out, errs, ended, code := d.w.background(args...)
	d.hastenUntil("the command ends: "+strings.Join(args, " "), ended)
	return result{code: code(), out: out.String(), err: errs.String()}
}

// hastenUntil is until, while the sandbox's time goes on, no faster than the daemon follows.
func (d *daemon) hastenUntil(what string, over <-chan struct{}) {
	d.w.t.Helper()
	d.until(what, func() bool {
		if through := d.table("Orders").AppliedThrough; through != nil && d.w.Clock.Now().Sub(*through) < 4*time.Second {
			d.w.Clock.Advance(1500 * time.Millisecond)
		}
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
}

func itemKey(pk, sk string) string { return fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk) }

// Attack 75: a wrong cell, a missing one, a row that an item has left in a gap, a guard two hours
// in the future, and a cell that belongs to nobody.
func TestPlantedDifferencesAreRepaired(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t, 841)
	w.moveRows()
	w.prepare("Orders")
	for i := range 4 {
		w.Put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"a":{"S":"value %d"},"text":{"S":"t"}`, i))
	}
	d := w.run()
	d.settle("Orders")
	s := w.openPair()
	now := w.Clock.Now()
	s.plant("p", "0/a", "wrong", now)
	stored := s.cells("p")
	s.remove("p", stored["1/a"])
	s.apply("p", "2", `"a":{"S":"moved"},"text":{"S":"old"}`, change.Version(now.Add(-time.Hour).UnixMilli()))
	s.apply("p", "3", `"a":{"S":"forged"},"text":{"S":"t"}`, change.Version(now.Add(2*time.Hour).UnixMilli()))
	s.plant("nobody", "x", "foreign", now.Add(-time.Hour))
	found := s.settled("differences.jsonl", map[string][]string{itemKey("p", "0"): nil, itemKey("p", "1"): nil,
		itemKey("p", "2"): {"by#old#p#2"}, itemKey("p", "3"): nil})
	for i := range 4 {
		if got := found[itemKey("p", fmt.Sprint(i))]; got != verify.Different {
			t.Errorf("item %d is %q", i, got)
		}
	}
	families := s.compile("Orders").Families()
	before := s.stored("orders", families)
	r := w.command("repair", "--from", "differences.jsonl", "--dry-run")
	for _, want := range []string{"Orders: 4 items would be looked at", "missing cells in 1 item", "stale rows in 1 item",
		"future guards in 1 item",
		"1 foreign column", "Nothing was changed"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("dry run, exit %d, lacks %q: %s%s", r.code, want, r.out, r.err)
		}
	}
	w.refused(2, "--yes", "repair", "--from", "differences.jsonl", "--delete-foreign")
	if !maps.EqualFunc(before, s.stored("orders", families), slices.Equal) {
		t.Error("a dry run has changed rows")
	}
	r = d.hastened("repair", "--from", "differences.jsonl", "--json") // two items were written less than a minute ago
	type counts struct{ Items, Repaired, Hot, Different, Refused, Unproven int }
	var done struct{ Tables []counts }
	err := json.Unmarshal([]byte(r.out), &done)
	if want := (counts{Items: 4, Repaired: 2, Hot: 2}); r.code != 4 || err != nil || done.Tables[0] != want {
		t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	if n := len(s.cells("nobody")); n != 1 {
		t.Errorf("%d cells of nobody are left without --delete-foreign", n)
	}
	w.Clock.Advance(2 * time.Minute)
	d.settle("Orders")
	r = d.hastened("repair", "--from", "differences.jsonl", "--delete-foreign", "--yes")
	if r.code != 0 || !strings.Contains(r.out, "4 items are equal now") ||
		!strings.Contains(r.out, "1 of 1 foreign column deleted") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	w.Put("Orders", "p", "3", `"a":{"S":"a change that the guard in the future would hide"},"text":{"S":"t"}`)
	d.settle("Orders")
	w.Equal("Orders")
	if err := s.compare(t.Context(), "Orders"); err != nil {
		t.Error(err)
	}
	d.stop()
	w.refused(3, "owner", "repair", "--from", "differences.jsonl")
}

// cells returns the newest cells of a row in Bigtable, by qualifier.
func (s *sides) cells(row string) map[string]bigtable.Cell {
	s.w.t.Helper()
	out := map[string]bigtable.Cell{}
	err := s.sink.Rows(s.w.t.Context(), "orders", row, row+"\x00", []bigtable.View{{Family: "d", Versions: 1}},
		func(r *bigtable.Row) error {
			for _, c := range r.Cells {
				c.Qualifier, c.Value = bytes.Clone(c.Qualifier), bytes.Clone(c.Value)
				out[string(c.Qualifier)] = c
			}
			return nil
		})
	if err != nil {
		s.w.t.Fatal(err)
	}
	return out
}

// TestBinaryKeysGoFromVerifyToRepair: keys of types B and N, a row that turns back into its item,
// and a row of nobody whose key is not text.
func TestBinaryKeysGoFromVerifyToRepair(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t, 842)
	w.write("orders.yaml", `types: "t:types" # with them, rows turn back into their items
families: {d: {max_versions: 1}, t: {max_versions: 1}}
rules:
- {name: item, match: {p: "{a}", s: "{b}"}, row: "{p|hex}#{s}", cells: [{attrs: all, except: [p, s], to: "d:{attr}"}]}
`)
	w.tables = []string{"{source: Orders, target: orders, mapping: orders.yaml}"}
	w.CreateTable("Orders", sandbox.Key{Name: "p", Type: "B"}, sandbox.Key{Name: "s", Type: "N"})
	w.configure()
	w.ok("schema", "--apply")
	w.Call("PutItem", `{"TableName":"Orders","Item":{"p":{"B":"/wAK"},"s":{"N":"1.50"},"a":{"B":"/v8="}}}`)
	d := w.run()
	d.settle("Orders")
	w.explains(w.command("explain", "--key", `{"p":"/wAK","s":1.5}`), 0, "\nequal.\n", "row ff000a#1.5")
	const nobodys = "\xff\x00\n"
	w.plant("Orders", "ff000a#1.5", setCell("a", "\xfd"))
	w.plant("Orders", nobodys, setCell("a", "\xfc"))
	w.Clock.Advance(2 * time.Minute) // what was written less than a minute ago is hot
	d.settle("Orders")
	r := d.hastened("verify", "--differences", "differences.jsonl", "--show-data")
	w.explains(r, 4, "1 item is different", "1 cell is foreign")
	text, err := os.ReadFile(filepath.Join(w.dir, "differences.jsonl"))
	if want := base64.StdEncoding.EncodeToString([]byte("\xfd")); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v: the file lacks the value: %s", err, text)
	}
	r = d.hastened("explain", "--row", "ff000a#1.5", "--show-data")
	w.explains(r, 4, `turn back into {"a":{"B":"/Q=="},"p":{"B":"/wAK"},"s":{"N":"1.5"}}`,
		"cell d:a is 0xfd, the item says 0xfeff")
	r = w.command("explain", "--row-base64", base64.StdEncoding.EncodeToString([]byte(nobodys)))
	w.explains(r, 4, "Row 0xff000a of orders: 0 items, 1 cell", "1 cell is foreign")
	r = d.hastened("repair", "--from", "differences.jsonl", "--delete-foreign", "--yes", "--no-wait")
	w.explains(r, 0, "Orders: 1 item asked for: 1 request.\n  ",
		"orders: the deletion of 1 foreign column asked for: 1 request")
	r = d.hastened("repair", "--from", "differences.jsonl", "--delete-foreign", "--yes")
	w.explains(r, 0, "1 item is equal now (1 written", " of 1 foreign column deleted") // by either request
	w.Equal("Orders")
}
