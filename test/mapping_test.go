package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	oneColumn = `families: {d: {max_versions: 1}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:v"}]}]
`
	twoColumns = `families: {d: {max_versions: 1}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:v"}, {attr: w, to: "d:w"}]}]
`
	twoFamilies = `families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:v"}, {attr: w, to: "e:w"}]}]
`
	otherKeys = `families: {d: {max_versions: 1}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{s}#{p}", cells: [{attr: v, to: "d:v"}, {attr: w, to: "d:w"}]}]
`
)

// mapped prepares Orders with a mapping in a file, and runs a daemon that has applied some items.
func (w *world) mapped(mapping string) *daemon {
	w.t.Helper()
	w.write("orders.yaml", mapping)
	w.tables = []string{"{source: Orders, target: orders, mapping: orders.yaml}"}
	w.prepare("Orders")
	d := w.run()
	for i := range 60 {
		w.Put("Orders", fmt.Sprint("p", i%9), fmt.Sprint(i), `"v":{"N":"1"},"w":{"S":"x"}`)
	}
	d.settle("Orders")
	w.Equal("Orders")
	return d
}

// TestColumnIsAddedWithoutANewTarget: an edit, mapping accept beside the running daemon, and the
// copied table. The column is in a new family, without which nothing is accepted: every write of
// the new mapping would be refused.
func TestColumnIsAddedWithoutANewTarget(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t, 1201)
	d := w.mapped(oneColumn)
	w.write("orders.yaml", twoFamilies)
	if out := w.ok("mapping", "diff"); !strings.Contains(out, "mapping accept --table Orders") {
		t.Errorf("mapping diff:\n%s", out)
	}
	w.refused(3, "orders:e is missing", "mapping", "accept", "--table", "Orders")
	w.ok("schema", "--apply")
	w.ok("mapping", "accept", "--table", "Orders")
	w.Put("Orders", "p1", "1", `"v":{"N":"2"},"w":{"S":"during"}`)
	w.Delete("Orders", "p2", "2")
	d.until("the mapping is the new one and the table is copied", func() bool {
		d.hasten(5 * time.Second)
		st := d.table("Orders")
		return st.State == "running" && len(st.Reasons) == 0 && w.openPair().compare(t.Context(), "Orders") == nil
	})
	d.stop()
	d = w.run()
	w.Put("Orders", "p3", "3", `"v":{"N":"3"},"w":{"S":"later"}`)
	d.settle("Orders")
	w.Equal("Orders")
	d.stop()
	w.write("orders.yaml", oneColumn)
	w.refused(3, "the mapping of Orders is not the one", "run")
}

// TestMovedRowsNeedANewTarget types what mapping diff prints where a mapping cannot be accepted: a
// second pipeline beside the first one, with the new mapping and another target, until readers may
// switch.
func TestMovedRowsNeedANewTarget(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t, 1202)
	d := w.mapped(twoColumns)
	before := w.openPair()
	w.write("orders.yaml", otherKeys)
	diff := w.command("mapping", "diff")
	if diff.code != 4 {
		t.Fatalf("mapping diff: exit %d\n%s%s", diff.code, diff.out, diff.err)
	}
	w.refused(4, "", "mapping", "accept", "--table", "Orders")
	// Step 1.
	text, err := os.ReadFile(filepath.Join(w.dir, "tailrace.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	next := string(text)
	for _, change := range [][2]string{
		{"pipeline: shop", "pipeline: shop2"}, {"dir: ./data", "dir: ./data2"},
		{"target: orders,", "target: orders2, backfill: scan,"}, {`start: "trim_horizon"`, `start: ""`},
	} {
		if !strings.Contains(next, change[0]) {
			t.Fatalf("no %q in the configuration", change[0])
		}
		next = strings.Replace(next, change[0], change[1], 1)
	}
	w.write("NEW.yaml", next)
	// Steps 2 to 4, as they are printed.
	for _, line := range []string{"schema --apply -c NEW.yaml", "check -c NEW.yaml", "run -c NEW.yaml",
		"status --wait applied=now -c NEW.yaml"} {
		if !strings.Contains(diff.out, "replicator "+line) {
			t.Errorf("mapping diff does not print %q\n%s", line, diff.out)
		}
	}
	w.ok("schema", "--apply", "-c", "NEW.yaml")
	w.ok("check", "-c", "NEW.yaml", "--sample", "0")
	second := w.run("-c", "NEW.yaml")
	w.Put("Orders", "p1", "1", `"v":{"N":"2"},"w":{"S":"during"}`)
	w.Delete("Orders", "p2", "2")
	second.until("the new target is complete", func() bool {
		second.hasten(5 * time.Second)
		s, ok := second.status()
		return ok && s.Ready
	})
	second.settle("Orders")
	if err := before.compareWith(t.Context(), "Orders", "orders2"); err != nil {
		t.Error(err)
	}
	w.write("orders.yaml", twoColumns)
	d.settle("Orders")
	w.Equal("Orders") // readers of the old target had it all the time
	d.stop()
	second.stop()
}
