package pipeline_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// verifies lets pipelines compare continuously, with passes that follow each other quickly.
func (w *world) verifies() {
	w.opts = func(o *pipeline.Options) {
		o.Scratch = w.t.TempDir() // the next process is on another machine
		o.Tables[0].Verify = pipeline.Verify{ReadUnits: 500}
		o.Periods.Verify, o.Periods.Verified = 200*time.Millisecond, time.Second
	}
}

// verified returns what the continuous comparison of Orders says.
func (r *run) verified() continuous.Status {
	if s := r.table("Orders").Verify; s != nil {
		return *s
	}
	return continuous.Status{}
}

// overwrite writes a row of an item of Orders as a lost change would have left it.
func (r *run) overwrite(row, pk, sk, value string) {
	r.t.Helper()
	key := fmt.Appendf(nil, `{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk)
	of := transform.Item{Guard: guard.Qualifier("shop", "Orders", key), Table: "Orders", Pipeline: "shop", Key: key}
	err := r.sink.Apply(r.t.Context(), target("Orders"), &transform.Write{
		Item: of, Version: change.Version(r.clock.Now().UnixMilli()),
		Rows: []transform.Row{{Key: []byte(row), Class: transform.ClassR, Cells: []transform.Cell{
			{Family: "d", Qualifier: []byte("v"), Value: []byte(value)}}}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// erase deletes a row with its guards.
func (r *run) erase(key string) {
	r.t.Helper()
	var cells []bigtable.Cell
	read := bigtable.GuardedRead{Keys: []string{key}, Views: []bigtable.View{{Family: "d", Versions: 10}}, Dead: true}
	err := r.sink.GuardedRows(r.t.Context(), target("Orders"), read, func(row *bigtable.GuardedRow) error {
		cells = append(append(append(cells, row.Cells...), row.Live...), row.Dead...)
		return nil
	})
	if err == nil {
		err = r.sink.DeleteCells(r.t.Context(), target("Orders"), []byte(key), cells)
	}
	if err != nil || len(cells) == 0 {
		r.t.Fatal(len(cells), err)
	}
}

// guardsOf returns how many guards a row of Orders has in _tr_live and in _tr_dead.
func (r *run) guardsOf(key string) (live, dead int) {
	r.t.Helper()
	read := bigtable.GuardedRead{Keys: []string{key}, Dead: true}
	err := r.sink.GuardedRows(r.t.Context(), target("Orders"), read, func(row *bigtable.GuardedRow) error {
		live, dead = len(row.Live), len(row.Dead)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return live, dead
}

// TestContinuousComparisonCollectsGuardsOfExpiredItems: the mapping keeps items that TTL deleted.
// Once the cells of one have aged away, its guard holds nothing and becomes a tombstone; one with a
// cell that stays keeps its guard.
func TestContinuousComparisonCollectsGuardsOfExpiredItems(t *testing.T) {
	long(t, "compares a table several times")
	w := newWorld(t)
	w.verifies()
	w.mapping = `
families: {d: {max_versions: 1}, a: {max_age: 1h}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  segments: escape
  on_ttl_expiry: keep
  cells: [{attr: v, to: "a:v"}, {attr: w, to: "d:w"}]
`
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	expires := fmt.Sprintf(`,"expires":{"N":"%d"}`, w.clock.Now().Add(20*time.Minute).Unix())
	w.put("Orders", "p", "aging", `"v":{"N":"1"}`+expires)
	w.put("Orders", "p", "staying", `"w":{"N":"1"}`+expires)
	r.settle()
	w.clock.Advance(30 * time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.settle()
	for _, row := range []string{"p#aging", "p#staying"} {
		if live, dead := r.guardsOf(row); live != 1 || dead != 0 {
			t.Fatalf("row %s has %d live and %d dead guards after the expiry", row, live, dead)
		}
	}
	w.clock.Advance(2 * time.Hour)
	r.hastenUntil("the guard of the aged item is collected", func() bool {
		live, dead := r.guardsOf("p#aging")
		return live == 0 && dead == 1
	})
	before := r.verified().Cycles
	r.hastenUntil("two more cycles are finished", func() bool { return r.verified().Cycles > before+1 })
	if live, dead := r.guardsOf("p#staying"); live != 1 || dead != 0 {
		t.Errorf("the row with a cell has %d live and %d dead guards", live, dead)
	}
	if s := r.verified(); s.Different+s.Foreign+s.Unproven+s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

// TestContinuousComparisonFindsWhatWasPlanted within a cycle; the next process knows it at once,
// and it is cleared when it is repaired. Neither the log nor the status names a key.
func TestContinuousComparisonFindsWhatWasPlanted(t *testing.T) {
	long(t, "compares a table several times")
	w := newWorld(t)
	w.verifies()
	w.createTable("Orders")
	r := w.start("Orders")
	for i := range 40 {
		w.put("Orders", fmt.Sprint("key", i%7), fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	r.settle()
	r.hastenUntil("a cycle is finished", func() bool { return r.verified().Cycles > 0 })
	if s := r.verified(); s.Different+s.Foreign+s.Unproven+s.Refused != 0 || s.CheckedSince == nil || s.File != "" {
		t.Fatalf("%+v", s)
	}
	r.overwrite("key1#1", "key1", "1", "other")
	r.overwrite("ghost#1", "ghost", "1", "1")
	r.erase("key2#2")
	r.plant("nobody", "d", "x", "", r.clock.Now().Add(-time.Hour))
	before := r.verified().Cycles
	r.hastenUntil("all differences are found", func() bool {
		s := r.verified()
		return s.Different == 3 && s.Foreign == 1
	})
	if s := r.verified(); s.Cycles > before+20 {
		t.Errorf("found after %d cycles", s.Cycles-before)
	}
	r.listed(4)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = w.restart("Orders")
	r.until("the next process shows what the last one knew", func() bool {
		s := r.verified()
		return s.Different == 3 && s.Foreign == 1 && s.Cycles >= before
	})
	r.hastenUntil("it lists them, too", func() bool {
		text, _ := os.ReadFile(r.verified().File)
		return strings.Count(string(text), "\n") == 4
	})
	for _, key := range [][2]string{{"key1", "1"}, {"key2", "2"}, {"ghost", "1"}} {
		w.put("Orders", key[0], key[1], `"v":{"N":"2"}`)
	}
	w.delete("Orders", "ghost", "1")
	r.erase("nobody")
	r.hastenUntil("what was repaired is cleared", func() bool {
		s := r.verified()
		return s.Different+s.Foreign == 0 && s.Waits == ""
	})
	r.listed(0)
	for _, e := range w.logged.All() {
		if text := fmt.Sprint(e.Message, e.ContextMap()); strings.Contains(text, "key1") || strings.Contains(text, "ghost") {
			t.Errorf("a key is in the log: %s", text)
		}
	}
	r.settle()
	r.equal()
	r.ready()
}

// listed waits until the file of differences has so many lines, and checks who may read it.
func (r *run) listed(lines int) {
	r.t.Helper()
	file := r.verified().File
	if file == "" {
		return
	}
	r.until("the differences are listed", func() bool {
		text, _ := os.ReadFile(file)
		return strings.Count(string(text), "\n") == lines
	})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		r.t.Errorf("%v, %v", info, err)
	}
}

// TestNothingIsComparedWhileATableIsCopied: rows are missing then, which is no difference.
func TestNothingIsComparedWhileATableIsCopied(t *testing.T) {
	long(t, "copies a table")
	w := newWorld(t)
	w.verifies()
	w.backfill.From = "scan"
	w.createTable("Orders")
	for i := range 40 {
		w.put("Orders", fmt.Sprint("p", i%7), fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	r := w.start("Orders")
	r.until("the comparison waits", func() bool {
		s := r.verified()
		return s.Waits == "the table is copying" && s.UnitsUsed == 0
	})
	r.hastenUntil("a cycle is finished", func() bool { return r.verified().Cycles > 0 })
	if s := r.verified(); s.Different+s.Foreign+s.Unproven != 0 {
		t.Errorf("%+v", s)
	}
	r.settle()
	r.equal()
}
