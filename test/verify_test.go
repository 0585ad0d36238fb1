package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/verify/report"
)

// plant writes to a row of a target as somebody else than the replicator.
func (w *world) plant(table, row string, change func(*cloud.Mutation)) {
	w.t.Helper()
	client, err := cloud.NewClient(w.t.Context(), "local", "local",
		option.WithEndpoint(w.Bigtable.Addr()), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	m := cloud.NewMutation()
	change(m)
	if err := client.Open(target(table)).Apply(w.t.Context(), row, m); err != nil {
		w.t.Fatal(err)
	}
}

func setCell(column, value string) func(*cloud.Mutation) {
	return func(m *cloud.Mutation) { m.Set("d", column, cloud.Now(), []byte(value)) }
}

// TestVerifyNamesWhatDiffers: a wrong value, a missing row, a cell too many and a foreign row, each
// with its item, while the daemon runs. What is written again is equal.
func TestVerifyNamesWhatDiffers(t *testing.T) {
	long(t, "12 s")
	w := newWorld(t, 731)
	w.prepare("Orders")
	w.refused(3, "never replicated", "verify")
	for _, sk := range []string{"fedora", "beret", "cap", "bowler"} {
		w.Put("Orders", "hats", sk, `"n":{"N":"1"}`)
	}
	d := w.run()
	d.settle("Orders")
	if out := w.ok("verify"); !strings.Contains(out, "orders are equal: 4 items, 4 rows, 4 cells") {
		t.Errorf("before: %s", out)
	}
	r := d.hastened("verify", "--sample", "3", "--seed", "9")
	w.explains(r, 0, "no difference in 3 random items")
	w.plant("Orders", "hats#fedora", setCell("n", "2"))
	w.plant("Orders", "hats#beret", func(m *cloud.Mutation) { m.DeleteRow() })
	w.plant("Orders", "hats#cap", setCell("m", "3"))
	w.plant("Orders", "nobody's", setCell("n", "4"))
	if err := os.WriteFile(filepath.Join(w.dir, "differences.jsonl"), []byte("for everybody\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r = d.hastened("verify", "--table", "Orders", "--differences", "differences.jsonl", "--html", "page.html", "--json")
	var found struct {
		Verdict report.Verdict
		Tables  []report.Table
	}
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != 4 || len(found.Tables) != 1 {
		t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	x := found.Tables[0]
	if found.Verdict != report.Different || x.Equal != 1 || x.Different != 3 || x.Foreign != 1 || x.Unproven != 0 ||
		x.Proof != report.Assumed {
		t.Errorf("%+v", found)
	}
	path := filepath.Join(w.dir, "differences.jsonl")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	html, err := os.ReadFile(filepath.Join(w.dir, "page.html"))
	info, errStat := os.Stat(filepath.Join(w.dir, "page.html"))
	if err != nil || errStat != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, %v", info, err, errStat)
	}
	if text := string(html); !strings.Contains(text, "lines of differences.jsonl") || strings.Contains(text, "fedora") ||
		!strings.Contains(text, "Orders and orders differ: 3 items are different") {
		t.Errorf("the page: %s", text)
	}
	w.refused(3, "make page", "verify", "--html", "no/such/directory/page.html")
	w.namesDifferences(path, map[string]string{
		"fedora": "value", "beret": "missing_row", "cap": "extra_cell", "nobody's": "foreign",
	})
	w.refused(2, "--sample", "verify", "--seed", "9")
	r = d.hastened("verify", "--sample", "100", "--differences", "sample.jsonl")
	w.namesDifferences(filepath.Join(w.dir, "sample.jsonl"), map[string]string{
		"fedora": "value", "beret": "missing_row", "cap": "extra_cell",
	})
	if r.code != 4 || !strings.Contains(r.out, "of 4 random items (100 were asked for") {
		t.Errorf("sample, exit %d: %s%s", r.code, r.out, r.err)
	}
	for _, sk := range []string{"fedora", "beret", "cap"} {
		w.Put("Orders", "hats", sk, `"n":{"N":"5"}`)
	}
	w.plant("Orders", "nobody's", func(m *cloud.Mutation) { m.DeleteRow() })
	d.settle("Orders")
	if out := w.ok("verify"); !strings.Contains(out, "orders are equal: 4 items") {
		t.Errorf("after: %s", out)
	}
	w.Equal("Orders")
	d.stop()
	w.refused(3, "owner", "verify")
}

// namesDifferences fails unless the file has one line for each sort key or row, with its kind, and
// no value.
func (w *world) namesDifferences(path string, want map[string]string) {
	w.t.Helper()
	file, err := os.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for d, err := range report.Differences(file) {
		if err != nil {
			w.t.Fatal(err)
		}
		n++
		name, kind := string(d.Row), d.Status
		if d.Key != nil {
			var key struct{ SK struct{ S string } }
			if err := json.Unmarshal(d.Key, &key); err != nil || len(d.Kinds) != 1 {
				w.t.Fatalf("%+v, %v", d, err)
			}
			name, kind = key.SK.S, string(d.Kinds[0])
		}
		if want[name] != kind {
			w.t.Errorf("%q: %s, want %s", name, kind, want[name])
		}
		for _, c := range d.Cells {
			if c.Want != nil && c.Want.Value != nil || c.Have != nil && c.Have.Value != nil {
				w.t.Errorf("%q: a value stands in the file", name)
			}
		}
	}
	if n != len(want) {
		w.t.Errorf("%d lines, want %d", n, len(want))
	}
}
