package test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cloud "cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/shadow/replay"
)

// TestShadowComparesReads: an application reads what it has just written, and no read is a false
// alarm, although its rows come later. A wrong cell and a missing row are named with their items.
func TestShadowComparesReads(t *testing.T) {
	long(t, "20 s")
	w := newWorld(t, 885)
	w.prepare("Orders")
	w.refused(3, "never replicated", "shadow", "--listen", "127.0.0.1:0")
	d := w.run()
	d.settle("Orders")
	s := w.startShadow("--json", "--mismatches", "wrong.jsonl")
	s.daemon = d
	s.use(15)
	r := s.end()
	totals, ok := r.Totals()
	if !ok || totals.Reads != 15 || totals.Replayed != 15 || totals.Mismatches != 0 || totals.Undecided != 0 {
		t.Errorf("%+v: %s", totals, s.errs.String())
	}
	d.settle("Orders")
	w.plant("Orders", "hats#fedora0", setCell("n", "2"))
	w.plant("Orders", "hats#fedora2", func(m *cloud.Mutation) { m.DeleteRow() })
	s = w.startShadow("--json", "--mismatches", "wrong.jsonl")
	s.daemon = d
	for range 3 {
		s.post("Query", hatsQuery)
	}
	s.post("GetItem", `{"TableName":"Orders","Key":{"pk":{"S":"hats"},"sk":{"S":"fedora0"}}}`)
	r = s.endWith(4)
	totals, _ = r.Totals()
	if totals.Reads != 4 || totals.Replayed != 4 || totals.Mismatches != 7 || totals.Undecided != 0 {
		t.Errorf("%+v: %s", totals, s.errs.String())
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "wrong.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var m replay.Mismatch
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		found[m.Key] = strings.Join(m.Kinds, " ")
	}
	want := map[string]string{
		`{"pk":{"S":"hats"},"sk":{"S":"fedora0"}}`: "value", `{"pk":{"S":"hats"},"sk":{"S":"fedora2"}}`: "missing_row",
	}
	if !maps.Equal(found, want) {
		t.Errorf("%v in %d lines", found, len(slices.Collect(strings.Lines(string(text)))))
	}
	d.stop()
}
