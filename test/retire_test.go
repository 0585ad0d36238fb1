package test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// prefixed is a mapping whose rows begin with a letter, so that two tables may share a target.
func prefixed(letter string) string {
	return fmt.Sprintf(`families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "%s#{p}#{s}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
`, letter)
}

// cellsIn returns all cells of some families of the target of Orders, by row.
func (s *sides) cellsIn(families ...string) map[string][]string {
	s.w.t.Helper()
	var views []bigtable.View
	for _, f := range families {
		views = append(views, bigtable.View{Family: f})
	}
	rows := map[string][]string{}
	err := s.sink.Rows(s.w.t.Context(), "orders", "", "", views, func(r *bigtable.Row) error {
		for _, c := range r.Cells {
			rows[string(r.Key)] = append(rows[string(r.Key)],
				fmt.Sprintf("%s:%q@%d=%q", c.Family, c.Qualifier, c.Time.UnixMilli(), c.Value))
		}
		return nil
	})
	if err != nil {
		s.w.t.Fatal(err)
	}
	return rows
}

// fenceRow stores in the row of a table that a cutover has fenced it, as a cutover does before it
// fences the log.
func (s *sides) fenceRow(table, id string) {
	s.w.t.Helper()
	for {
		row, err := s.sink.LoadState(s.w.t.Context(), "shop", table)
		if err != nil {
			s.w.t.Fatal(err)
		}
		next := *row
		next.Fenced = &bigtable.Fenced{ID: id, Time: s.w.Clock.Now().UTC()}
		if s.sink.CompareAndSet(s.w.t.Context(), row, &next) == nil {
			return
		}
	}
}

// ofOrders returns the rows of Orders, or those of other tables.
func ofOrders(rows map[string][]string, orders bool) map[string][]string {
	rows = maps.Clone(rows)
	maps.DeleteFunc(rows, func(row string, _ []string) bool { return strings.HasPrefix(row, "o#") != orders })
	return rows
}

// The day after a cutover of two tables in one target: one of them is retired, killed in the middle
// and once more, and the other one goes on. Before that, a process dies between the fences in the
// rows and those in the logs.
func TestRetiredTableLeavesNothingButTheApplicationsRows(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t, 721)
	orders, other := "{source: Orders, target: orders, mapping: orders.yaml, backfill: none}",
		"{source: Other, target: orders, mapping: other.yaml, backfill: none}"
	w.write("orders.yaml", prefixed("o"))
	w.write("other.yaml", prefixed("x"))
	w.tables = []string{orders, other}
	w.prepare("Orders", "Other")
	for _, table := range []string{"Orders", "Other"} {
		for i := range 5 {
			w.Put(table, "p", fmt.Sprint(i), `"n":{"N":"1"}`)
		}
		w.Delete(table, "p", "4")
	}
	d := w.run()
	d.settle("Orders", "Other")
	w.refused(3, "is configured and not fenced", "table", "retire", "--table", "Orders", "--yes")

	// Another replicator may carry a table that this configuration does not have.
	w.tables = []string{orders}
	w.configure()
	w.refused(4, "table Other has rows in orders, too", "cutover", "--table", "Orders")
	w.tables = []string{orders, other}
	w.configure()

	// The rows are fenced, and the process that did it is gone.
	d.kill()
	s := w.openPair()
	s.fenceRow("Orders", "f1")
	s.fenceRow("Other", "f1")
	w.refused(3, "a cutover of table Orders is in progress", "run")
	w.refused(4, "no owner", "cutover", "--table", "Orders,Other", "--quiet", "2s", "--out", "cert.json")
	d = w.run()
	d.until("it runs behind the fence", func() bool { return d.ready() && d.table("Orders").State == "fenced" })
	c := w.begin(d, "cutover", "--table", "Orders,Other", "--quiet", "2s", "--out", "cert.json")
	if code := c.ends(); code != 0 || !strings.Contains(c.out.String(), "8 items are equal") {
		t.Fatalf("cutover: exit %d\n%s", code, c.out)
	}
	if out := w.ok("status"); !strings.Contains(out, "Orders: fenced since") || !strings.Contains(out, "cutover f1") {
		t.Errorf("status: %s", out)
	}

	// The application writes.
	w.plant("Orders", "o#p#0", setCell("n", "2"))
	w.plant("Orders", "o#p#new", setCell("n", "3"))
	data, guards := s.cellsIn("d"), s.cellsIn(transform.LiveFamily, transform.DeadFamily)
	if len(ofOrders(guards, true)) != 5 || len(ofOrders(guards, false)) != 5 {
		t.Fatalf("guards: %v", guards)
	}
	untouched := func(when string) {
		t.Helper()
		if !maps.EqualFunc(data, s.cellsIn("d"), slices.Equal) {
			t.Errorf("%s: the application's cells were %v, are %v", when, data, s.cellsIn("d"))
		}
		left := s.cellsIn(transform.LiveFamily, transform.DeadFamily)
		if !maps.EqualFunc(ofOrders(guards, false), ofOrders(left, false), slices.Equal) {
			t.Errorf("%s: the guards of the other table were %v, are %v", when, guards, left)
		}
	}
	retire := []string{"table", "retire", "--table", "Orders", "--drop-guards"}
	w.refused(3, "carries table Orders", append(retire, "--yes")...)
	d.stop()
	w.refused(2, "not confirmed", retire...)
	if out := w.command(retire...).out; !strings.Contains(out, "5 cells in 5 rows of orders; 5 of others stay") {
		t.Errorf("dry run: %s", out)
	}
	if left := s.cellsIn(transform.LiveFamily, transform.DeadFamily); !maps.EqualFunc(guards, left, slices.Equal) {
		t.Error("a dry run has changed the guards")
	}

	// Killed when one guard is gone: the log is deleted, and the fenced row keeps everybody from
	// writing.
	held := w.traps.set(afterWrite, 1, true)
	c = w.begin(d, append(retire, "--yes")...)
	w.Until("table retire has deleted a guard", func() bool {
		select {
		case <-held.hit:
			return true
		case <-c.ended:
			t.Fatalf("it ended before: %s", c.out)
		default:
		}
		return false
	})
	c.kill()
	held.open()
	untouched("killed in the middle")
	if row, err := s.sink.LoadState(t.Context(), "shop", "Orders"); err != nil || row.Fenced == nil {
		t.Fatalf("the row is not fenced any more: %+v, %v", row, err)
	}
	d = w.run()
	d.until("Orders is refused", func() bool { return strings.Contains(d.table("Orders").Halt, "its log is lost") })
	d.stop()
	untouched("a replicator ran after the kill")

	out := w.ok(append(retire, "--yes", "--json")...)
	if !strings.Contains(out, `"retired":true`) {
		t.Errorf("retire: %s", out)
	}
	untouched("retired")
	if left := s.cellsIn(transform.LiveFamily, transform.DeadFamily); len(ofOrders(left, true)) > 0 {
		t.Errorf("guards are left: %v", left)
	}
	if out := w.ok(append(retire, "--yes")...); !strings.Contains(out, "Nothing is kept of table Orders") ||
		strings.Contains(out, "is retired.") {
		t.Errorf("retire again: %s", out)
	}

	// It is still configured, and nobody copies it over the rows of the application.
	if r := w.command("check"); r.code != 3 || !strings.Contains(r.out+r.err, "was retired at") {
		t.Errorf("check: exit %d\n%s%s", r.code, r.out, r.err)
	}
	w.refused(3, "its replication was retired at", "verify")
	if out := w.ok("explain", "--table", "Orders", "--key", `{"pk":"p","sk":"0"}`); !strings.Contains(out, "was retired") {
		t.Errorf("explain: %s", out)
	}
	d = w.run()
	d.until("Orders is refused", func() bool { return strings.Contains(d.table("Orders").Halt, "was retired at") })
	d.stop()
	untouched("a replicator ran with the retired table")

	// The other table goes on beside it.
	w.tables = []string{other}
	w.configure()
	w.ok("cutover", "--undo", "--yes")
	d = w.run()
	w.Put("Other", "p", "new", `"n":{"N":"7"}`)
	d.settle("Other")
	d.stop()
	after := s.cellsIn("d")
	if !maps.EqualFunc(ofOrders(data, true), ofOrders(after, true), slices.Equal) || len(after["x#p#new"]) != 1 {
		t.Errorf("the other table went on: %v", after)
	}
}
