package test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// mixing is the mapping of a second table that writes to the target of Orders.
const mixing = `families: {d: {max_versions: 1}}
rules:
- name: second
  match: {pk: "{p}", sk: "{s}"}
  row: "second#{p}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]
`

// mixTables gives the target of Orders a second table.
func (w *world) mixTables() {
	w.t.Helper()
	w.moveRows()
	w.write("orders.yaml", strings.Replace(moving, `row: "{p}"`, `row: "first#{p}"`, 1))
	w.write("items.yaml", mixing)
	w.tables = append(w.tables, "{source: Items, target: orders, mapping: items.yaml, backfill: none}")
}

// mixedEqual compares both tables with their target, cell by cell.
func (s *sides) mixedEqual() {
	s.w.t.Helper()
	var sources []oracle.Source
	for _, table := range []string{"Orders", "Items"} {
		program := s.compile(table)
		sources = append(sources, oracle.Source{Program: program, Schema: program.Table().Schema,
			Items: func(ctx context.Context, f func(change.Image) error) error { return s.items(ctx, table, f) }})
	}
	rows := func(ctx context.Context, f func(*bigtable.Row) error) error {
		return s.sink.Rows(ctx, "orders", "", "", verify.Views(sources[0].Program), f)
	}
	result, err := oracle.Compare(s.w.t.Context(), oracle.Options{}, sources, rows)
	if err != nil || !result.Equal() {
		s.w.t.Errorf("cell by cell: %+v, %v", result, err)
	}
}

// neighbours writes items beside the planted ones, into the same rows, at each read of the daemon,
// and only while the daemon is not behind: verify ends when the daemon has applied what verify has
// read.
func (d *daemon) neighbours() (stop func()) {
	w := d.w
	turn, quit := make(chan struct{}, 1), make(chan struct{})
	w.traps.watch(func(p point) {
		if p.op == "GetRecords" && !p.done {
			select {
			case turn <- struct{}{}:
			default:
			}
		}
	})
	behind := func(table string) bool {
		through := d.table(table).AppliedThrough
		return through == nil || w.Clock.Now().Sub(*through) > 4*time.Second
	}
	var done sync.WaitGroup
	done.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-quit:
				return
			case <-turn:
			}
			if behind("Orders") || behind("Items") {
				continue
			}
			sk := fmt.Sprintf("w%03d", n%400)
			w.Put("Orders", "p", sk, fmt.Sprintf(`"a":{"S":"%d"},"text":{"S":"t%d"}`, n, n%3))
			w.Put("Items", "p", sk, fmt.Sprintf(`"a":{"S":"%d"}`, n))
			if n%5 == 4 {
				w.Delete("Orders", "p", fmt.Sprintf("w%03d", (n+200)%400))
			}
		}
	})
	return func() {
		w.traps.watch(nil)
		close(quit)
		done.Wait()
	}
}

// TestPlantedDifferencesUnderWriters: each kind of difference is planted into the rows of two
// tables of one target, while neighbours in the same rows are written. verify names each with its
// item and nothing else, repair removes them, and both sides are equal, cell by cell.
func TestPlantedDifferencesUnderWriters(t *testing.T) {
	long(t, "20 s")
	w := newWorld(t, 741)
	w.mixTables()
	w.prepare("Orders", "Items")
	for i := range 8 {
		w.Put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"a":{"S":"old"},"b":{"S":"%d"},"text":{"S":"t"}`, i))
		w.Put("Items", "p", fmt.Sprint(i), `"a":{"S":"1"}`)
	}
	w.Put("Orders", "p", "4", `"a":{"S":"new"},"b":{"S":"4"},"text":{"S":"t"}`)
	d := w.run()
	d.settle("Orders", "Items")
	s := w.openPair()
	now := w.Clock.Now()
	stop := d.neighbours()
	want := w.plantAll(s, now)
	r := d.hastened("verify", "--differences", "differences.jsonl", "--json")
	if r.code != 4 || !strings.Contains(r.out, `"verdict":"different","tables":[`) {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	for _, part := range []string{
		`{"rule":"index by_text of rule item","rows":"by#{text}#{p}#{s}","items":4,"kinds":{`,
		`{"rule":"rule second","rows":"second#{p}",`,
	} {
		if !strings.Contains(r.out, part) || strings.Contains(r.out, "by_prefix") {
			t.Errorf("counts by rule lack %s, or show data: %s", part, r.out)
		}
	}
	if diff := cmp.Diff(want, w.named("differences.jsonl")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.Clock.Advance(2 * time.Minute) // nothing that was planted is hot any more
	d.settle("Orders", "Items")
	r = d.hastened("repair", "--from", "differences.jsonl", "--delete-foreign", "--yes")
	if r.code != 0 {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if r = d.hastened("verify", "--differences", "again.jsonl"); r.code != 0 {
		t.Errorf("after the repair: exit %d: %s%s%v", r.code, r.out, r.err, w.named("again.jsonl"))
	}
	stop()
	w.Put("Orders", "p", "5", `"a":{"S":"a change that the guard in the future would hide"},"text":{"S":"t"}`)
	d.settle("Orders", "Items")
	s.mixedEqual()
}

// plantAll plants each kind of difference, and returns what verify must name: key or row, and
// kinds.
func (w *world) plantAll(s *sides, now time.Time) map[string]string {
	w.t.Helper()
	w.plant("Orders", "by#t#p#0", func(m *cloud.Mutation) { m.DeleteRow() })
	s.apply("gone", "x", `"a":{"S":"1"},"text":{"S":"t"}`, change.Version(now.Add(-time.Hour).UnixMilli()))
	stored := s.cells("first#p")
	s.remove("first#p", stored["1/b"])
	w.plant("Orders", "first#p", setCell("2/z", "too many"))
	w.plant("Orders", "first#p", setCell("3/a", "wrong"))
	w.plant("Orders", "first#p", func(m *cloud.Mutation) { m.Set("d", "4/a", cloud.Now(), []byte("old")) })
	s.apply("p", "6", `"a":{"S":"moved"},"text":{"S":"before"}`, change.Version(now.Add(-time.Hour).UnixMilli()))
	s.apply("p", "5", `"a":{"S":"forged"},"text":{"S":"t"}`, change.Version(now.Add(2*time.Hour).UnixMilli()))
	w.plant("Orders", "second#p", setCell("7/a", "wrong in the second table"))
	s.plant("nobody", "x", "a foreign row", now.Add(-time.Hour))
	s.plant("first#p", "nobody/x", "a foreign cell", now.Add(-time.Hour))
	return map[string]string{
		"Orders p 0": "missing_row", "Orders gone x": "extra_cell stale", "Orders p 1": "missing_cell",
		"Orders p 2": "extra_cell", "Orders p 3": "value", "Orders p 4": "value", "Orders p 6": "extra_cell stale",
		"Orders p 5": "future value", "Items p 7": "value",
		"nobody d:x": "foreign", "first#p d:nobody/x": "foreign",
	}
}

// named returns what a file of differences names, by table and key, or row and column.
func (w *world) named(name string) map[string]string {
	w.t.Helper()
	file, err := os.Open(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	all := map[string]string{}
	for d, err := range report.Differences(file) {
		if err != nil {
			w.t.Fatal(err)
		}
		if d.Key == nil {
			all[fmt.Sprintf("%s %s:%s", d.Row, d.Family, d.Qualifier)] = d.Status
			continue
		}
		var key struct{ PK, SK struct{ S string } }
		if err := json.Unmarshal(d.Key, &key); err != nil {
			w.t.Fatal(err)
		}
		kinds := map[string]bool{}
		for _, k := range d.Kinds {
			kinds[string(k)] = true
		}
		all[d.Table+" "+key.PK.S+" "+key.SK.S] = strings.Join(slices.Sorted(maps.Keys(kinds)), " ")
	}
	return all
}
