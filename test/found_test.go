package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/transform"
)

// selecting prepares a world whose tables are found: by pattern, by tag, and one with an entry of
// its own.
func selecting(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed)
	w.testing = strings.Replace(periods("300ms"), "{", "{find: 200ms, ", 1)
	w.tables = []string{
		`{source: "orders-*", except: ["*-test"], target: "{table}"}`,
		`{tag: {replicate: bigtable}, target: "{table}"}`,
		`{source: Products, target: products}`,
	}
	return w
}

// tag gives a table the tag that the second selection asks for.
func (w *world) tag(table string) {
	w.t.Helper()
	w.Call("TagResource", fmt.Sprintf(`{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/%s",
		"Tags":[{"Key":"replicate","Value":"bigtable"}]}`, table))
}

// replicated returns the names of the tables in the daemon's status, in order.
func (d *daemon) replicated() (names []string) {
	s, _ := d.status()
	for _, t := range s.Tables {
		names = append(names, t.Source)
	}
	slices.Sort(names)
	return names
}

// backfill returns what the first start of a table has decided.
func (w *world) backfill(table string) string { return w.readLog(table).state.Backfill }

// item is an item of a table, older than its stream.
func oldItem(i int) []byte {
	return fmt.Appendf(nil, `{"pk":{"S":"old"},"sk":{"S":"%d"},"n":{"N":"%d"}}`, i, i)
}

// TestTablesAreFoundWhileRunning: by pattern and tag; a new one begins by itself and is not copied,
// an old one is; a missing target halts it alone, and a restart decides nothing anew.
func TestTablesAreFoundWhileRunning(t *testing.T) {
	long(t, "20 s")
	w := selecting(t, 1601)
	for _, name := range []string{"orders-eu", "orders-test", "catalog", "plain", "Products"} {
		w.CreateTable(name)
		w.Fill(name, 20, oldItem)
	}
	w.tag("catalog")
	w.configure()
	w.ok("schema", "--apply")
	if out := w.ok("check", "--sample", "0"); !strings.Contains(out, "tables[0] orders-*: orders-eu\n") ||
		!strings.Contains(out, "tables[1] replicate=bigtable: catalog\n") {
		t.Errorf("check does not say which selection chooses which tables:\n%s", out)
	}
	d := w.run()
	found := []string{"Products", "catalog", "orders-eu"}
	d.settle(found...)
	if got := d.replicated(); !slices.Equal(got, found) {
		t.Fatalf("replicated are %v, want %v", got, found)
	}
	d.checkClean()

	w.CreateTable("orders-new")
	w.Put("orders-new", "new", "0", `"n":{"N":"1"}`)
	d.until("the new table waits for its target", func() bool {
		st := d.table("orders-new")
		return st.State == "halted" && strings.Contains(strings.Join(st.Reasons, " "), "schema --apply")
	})
	w.Put("orders-eu", "beside", "0", `"n":{"N":"1"}`)
	d.settle("orders-eu")
	for _, name := range found {
		if st := d.table(name); st.State != "running" || len(st.Reasons) > 0 {
			t.Errorf("%s is %s: %v", name, st.State, st.Reasons)
		}
	}
	w.ok("schema", "--apply")
	d.until("it goes on by itself", func() bool { return d.table("orders-new").State == "running" })
	w.Put("orders-new", "new", "1", `"n":{"N":"1"}`)
	w.CreateTable("later") // its tag comes after it, and its stream after items
	w.Fill("later", 20, oldItem)
	w.Clock.Advance(5 * time.Second)
	for _, stream := range []string{`"StreamEnabled":false`,
		`"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"`} {
		w.Call("UpdateTable", `{"TableName":"later","StreamSpecification":{`+stream+`}}`)
	}
	w.tag("later")
	d.until("the tagged table is found", func() bool { return d.table("later").Source != "" })
	w.ok("schema", "--apply")
	found = append(found, "orders-new", "later")
	d.settle(found...)
	for name, want := range map[string]string{"orders-eu": "scan", "catalog": "scan", "Products": "scan",
		"orders-new": "", "later": "scan"} {
		if got := w.backfill(name); got != want {
			t.Errorf("backfill of %s is %q, want %q", name, got, want)
		}
	}
	if n := d.scrape()["tailrace_table_ready"]; len(n) != len(found) {
		t.Errorf("tailrace_table_ready: %v", n)
	}
	w.tag("orders-eu")
	d.until("it is named that two selections choose a table", func() bool {
		return strings.Contains(strings.Join(d.table("orders-eu").Reasons, "\n"), "other selections")
	})
	w.Put("orders-eu", "two", "0", `"n":{"N":"1"}`)
	d.settle(found...)
	w.Call("UntagResource",
		`{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/orders-eu","TagKeys":["replicate"]}`)
	d.until("it is not named any more", func() bool { return len(d.table("orders-eu").Reasons) == 0 })

	d.kill()
	w.Put("orders-new", "new", "2", `"n":{"N":"1"}`)
	d = w.run()
	d.settle(found...)
	d.checkClean()
	if got := w.backfill("orders-new"); got != "" {
		t.Errorf("after a restart orders-new is copied: %q", got)
	}
	w.Equal(found...)
}

// TestVanishedTableIsNamed: the others go on, its state stays until it is retired, and then it is
// gone.
func TestVanishedTableIsNamed(t *testing.T) {
	long(t, "20 s")
	w := selecting(t, 1602)
	for _, name := range []string{"orders-eu", "orders-gone", "orders-unread", "Products"} {
		w.CreateTable(name)
		w.Put(name, "a", "0", `"n":{"N":"1"}`)
	}
	w.configure()
	w.ok("schema", "--apply")
	d := w.run()
	d.settle("orders-eu", "orders-gone", "orders-unread", "Products")
	held := w.traps.set(pageRead, 1, true)
	w.Put("orders-gone", "last", "0", `"n":{"N":"1"}`)
	d.untilHit(held)
	w.Call("DeleteTable", `{"TableName":"orders-gone"}`)
	vanished := func() bool {
		return strings.Contains(strings.Join(d.table("orders-gone").Reasons, "\n"), "vanished")
	}
	d.until("it is named", vanished)
	d.untilHit(w.traps.set(point{op: "ListTables"}, 3, false)) // it is not ended before its last page is read
	held.open()
	w.Put("orders-eu", "b", "0", `"n":{"N":"1"}`)
	d.settle("orders-eu", "Products")
	if st := d.table("orders-eu"); len(st.Reasons) > 0 {
		t.Errorf("orders-eu: %v", st.Reasons)
	}
	d.until("its stream is read to its end, and its log released", func() bool {
		return d.table("orders-gone").State == "halted" && w.readLog("orders-gone").state.Released
	})
	if n := strings.Count(d.output.String(), `"reason":"vanished`); n != 1 {
		t.Errorf("it is named %d times in the log", n)
	}
	if rows := w.openPair().stored("orders-gone", []transform.Family{{Name: "d"}}); len(rows) != 2 {
		t.Errorf("the last change before the end is missing: %v", rows)
	}

	d.stop()
	w.Put("orders-unread", "last", "0", `"n":{"N":"1"}`)
	w.Call("DeleteTable", `{"TableName":"orders-unread"}`)
	d = w.run()
	d.until("it is still named after a restart", vanished)
	d.until("only one of the two was read to its end", func() bool {
		read, unread := d.table("orders-gone"), d.table("orders-unread")
		return read.State == "halted" && read.Ended && unread.State == "halted" && !unread.Ended &&
			unread.AppliedThrough != nil
	})
	d.until("it says of which one the last changes may be missing", func() bool {
		s, ok := d.status()
		return ok && strings.HasPrefix(s.Verdict.Cause, "orders-unread has vanished, and the last changes")
	})
	var s struct{ Reasons []string }
	if err := json.Unmarshal([]byte(w.ok("status", "--json")), &s); err != nil || !strings.Contains(fmt.Sprint(s),
		"vanished") {
		t.Errorf("status: %v %v", s, err)
	}
	w.ok("table", "retire", "--table", "orders-gone", "--yes")
	w.ok("table", "retire", "--table", "orders-unread", "--yes")
	d.until("it is not named any more", func() bool {
		return slices.Equal(d.replicated(), []string{"Products",
			"orders-eu"})
	})
	d.settle("orders-eu", "Products")
	d.checkClean()
	w.Equal("orders-eu", "Products")
}

// TestFoundTablesWithoutDynamoDB: commands about the queue know the tables by their logs, and a
// daemon begins with them.
func TestFoundTablesWithoutDynamoDB(t *testing.T) {
	long(t, "10 s")
	w := selecting(t, 1603)
	for _, name := range []string{"orders-eu", "catalog", "Products"} {
		w.CreateTable(name)
		w.Put(name, "a", "0", `"n":{"N":"1"}`)
	}
	w.tag("catalog")
	w.configure()
	w.ok("schema", "--apply")
	d := w.run()
	d.settle("orders-eu", "catalog", "Products")
	d.stop()
	if err := w.Faults.Inject(fault.Rule{Effect: fault.Error, Operation: "ListTables",
		Code: "AccessDeniedException"}); err != nil {
		t.Fatal(err)
	}
	r := w.command("status", "--json")
	if r.code != 0 || !strings.Contains(r.err, "cannot be listed") || !strings.Contains(r.out, `"catalog"`) {
		t.Errorf("status: exit %d\n%s%s", r.code, r.out, r.err)
	}
	d = w.run()
	d.until("it says that it cannot list", func() bool {
		s, ok := d.status()
		return ok && strings.Contains(strings.Join(s.Reasons, "\n"), "DynamoDB cannot be listed")
	})
	d.until("the page's first line says so, although each table is well", func() bool {
		s, _ := d.status()
		return s.Verdict.State == "not ready" && strings.Contains(s.Verdict.Cause, "DynamoDB cannot be listed")
	})
	w.Put("catalog", "b", "0", `"n":{"N":"1"}`)
	d.settle("orders-eu", "catalog", "Products")
	w.CreateTable("orders-new")
	w.ok("status", "--table", "orders-eu")
	w.Faults.Calm()
	d.until("the new table is found", func() bool { return d.table("orders-new").Source != "" })
	w.ok("schema", "--apply")
	d.settle("orders-eu", "catalog", "Products", "orders-new")
	d.checkClean()
	w.Equal("orders-eu", "catalog", "Products", "orders-new")
}
