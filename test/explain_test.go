package test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/change"
)

// explains fails unless a command ends with a code and prints all texts.
func (w *world) explains(r result, code int, texts ...string) {
	w.t.Helper()
	if r.code != code {
		w.t.Errorf("exit %d, want %d:\n%s%s", r.code, code, r.out, r.err)
	}
	for _, want := range texts {
		if !strings.Contains(r.out, want) {
			w.t.Errorf("want %q:\n%s%s", want, r.out, r.err)
		}
	}
}

// TestExplainSaysWhyARowLooksSo asks about items that are equal, behind, different for several
// reasons, refused by Bigtable, gone, and about rows with a ghost and with a cell of nobody.
func TestExplainSaysWhyARowLooksSo(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t, 871)
	w.moveRows()
	w.prepare("Orders")
	const item0, item1, item2 = `{"pk":"p","sk":"0"}`, `{"pk":"p","sk":"1"}`, `{"pk":"p","sk":"2"}`
	w.explains(w.command("explain", "--key", item0), 0, "there is none", "not started")
	w.refused(2, `the key of Orders is like {"pk":"text","sk":"text"}`, "explain", "--key", `{"pk":"p"}`)
	for _, sk := range []string{"0", "1", "2", "3"} {
		w.Put("Orders", "p", sk, `"a":{"S":"value `+sk+`"},"text":{"S":"secret"}`)
	}
	d := w.run()
	d.settle("Orders")
	plain := w.command("explain", "--key", item0)
	w.explains(plain, 0, "\nequal.\n", "INSERT", "applied by bigtable", "d:0/a", "1 change of the item", "No dead letters")
	if strings.Contains(plain.out, "value 0") || strings.Contains(plain.out, "secret") {
		t.Errorf("values are shown without --show-data:\n%s", plain.out)
	}
	w.explains(w.command("explain", "--key", `{"pk":{"S":"p"},"sk":{"S":"0"}}`, "--show-data"), 0, "\nequal.\n",
		"value 0", "by#secret#p#0")
	w.explainsAsJSON(item0)
	w.explains(w.command("explain", "--row", "p", "--show-data"), 0, "4 items, 8 cells", "equal: 4 items are equal")

	w.Bigtable.Faults.RefuseRow([]byte("p"), codes.Unavailable, -1) // which is tried again
	for _, a := range []string{"x", "y", "z"} {
		w.Put("Orders", "p", "0", `"a":{"S":"`+a+`"},"text":{"S":"secret"}`)
	}
	d.until("they are in the log", func() bool { return d.table("Orders").Changes == 7 })
	w.explains(w.command("explain", "--key", item0), 0, "the row is 3 changes behind", "not applied yet")
	w.Bigtable.Faults.Calm()
	d.settle("Orders")
	w.explains(w.command("explain", "--key", item0), 0, "\nequal.\n", "4 changes of the item")

	w.ok("pause", "--table", "Orders")
	d.until("it is paused", func() bool { return d.table("Orders").State == "paused" })
	w.Put("Orders", "p", "0", `"a":{"S":"later"},"text":{"S":"secret"}`)
	w.explains(w.command("explain", "--key", item0), 0, "the row is behind", "table Orders is paused")
	w.ok("resume", "--table", "Orders")
	d.settle("Orders")
	w.differencesAreExplained(d, item1, item2)

	w.Delete("Orders", "p", "0")
	d.settle("Orders")
	w.explains(w.command("explain", "--key", item0), 0, "equal: the table has no such item", "REMOVE")
	d.stop()
	w.explains(w.command("explain", "--key", item1), 0,
		"equal; what is written from now on does not arrive: no replicator owns")
	s := w.openPair()
	s.plant("p", "1/a", "wrong", w.Clock.Now())
	w.explains(w.command("explain", "--key", item1), 4, "different: cell d:1/a differs, and nothing is pending")
	w.Put("Orders", "p", "1", `"a":{"S":"nobody reads it"},"text":{"S":"secret"}`)
	w.explains(w.command("explain", "--key", item1), 4,
		"unproven: cell d:a differs (and 1 other difference), and the item has changed since")
	s.remove("p", s.cells("p")["1/a"])
	d = w.run()
	w.Put("Orders", "p", "1", `"a":{"S":"now"},"text":{"S":"secret"}`)
	d.settle("Orders")
	w.Equal("Orders")
}

// differencesAreExplained plants differences, and repairs them.
func (w *world) differencesAreExplained(d *daemon, item1, item2 string) {
	w.t.Helper()
	s, now := w.openPair(), w.Clock.Now()
	s.plant("p", "1/a", "wrong", now.Add(-time.Hour))
	s.remove("p", s.cells("p")["1/a"])
	s.plant("p", "1/a", "wrong", now.Add(-time.Hour))
	w.explains(d.hastened("explain", "--key", item1), 4, "different: cell d:1/a differs, and nothing is pending")
	w.explains(d.hastened("explain", "--key", item1, "--show-data"), 4,
		"different: cell d:1/a is wrong, the item says value 1, and nothing is pending")
	w.explains(d.hastened("explain", "--row", "p"), 4, "different: 1 item is different, and 3 items are equal")

	s.apply("p", "2", `"a":{"S":"moved"},"text":{"S":"old"}`, change.Version(now.Add(-time.Hour).UnixMilli()))
	w.explains(d.hastened("explain", "--row", "by#old#p#2"), 4,
		"row by#old#p#2 still holds the item", "1 item is different")
	s.plant("nobody", "x", "foreign", now.Add(-time.Hour))
	w.explains(w.command("explain", "--row-base64", "bm9ib2R5"), 4,
		"foreign: no item of the row can own it", "1 cell is foreign")
	w.explains(w.command("explain", "--row", "nowhere"), 4, "unproven: ", "no such row", "explain --key")

	w.Bigtable.Faults.RefuseRow([]byte("p"), codes.InvalidArgument, 2)
	w.Put("Orders", "p", "2", `"a":{"S":"refused"},"text":{"S":"secret"}`)
	d.until("it is a letter", func() bool { return d.table("Orders").DeadLetters == 1 })
	d.settle("Orders")
	w.explains(d.hastened("explain", "--key", item2), 4,
		"different: ", "1 dead letter of it is open: `replicator dlq show",
		"refused by bigtable  shard", "refused by bigtable: ")
	w.write("keys.jsonl", item1+"\n"+`{"pk":{"S":"p"},"sk":{"S":"2"}}`+"\n")
	w.Clock.Advance(2 * time.Minute)
	d.settle("Orders")
	d.hastened("repair", "--keys", "keys.jsonl")
	s.remove("nobody", s.cells("nobody")["x"])
	for _, item := range []string{item1, item2} {
		w.explains(w.command("explain", "--key", item), 0, "\nequal.\n")
	}
}

// explainsAsJSON checks the document of an item that is equal.
func (w *world) explainsAsJSON(key string) {
	w.t.Helper()
	var x struct {
		Schema     int
		Attributes []struct{ Name string }
		Verdict    struct {
			Status  string
			Pending int
		}
		Stored []struct {
			Guard  int64
			Wanted bool
			Cells  []struct{ State, Value string }
		}
		Log struct {
			Changes int
			Entries []struct {
				Created time.Time
				Applied []string
			}
		}
	}
	if err := json.Unmarshal([]byte(w.ok("explain", "--key", key, "--json")), &x); err != nil {
		w.t.Fatal(err)
	}
	v := x.Verdict
	if x.Schema != 1 || v.Status != "equal" || v.Pending != 0 || len(x.Stored) != 2 || len(x.Attributes) != 4 {
		w.t.Errorf("%+v", x)
	}
	for _, r := range x.Stored {
		if r.Guard == 0 || !r.Wanted || len(r.Cells) == 0 || r.Cells[0].State != "equal" || r.Cells[0].Value != "" {
			w.t.Errorf("%+v", r)
		}
	}
	if l := x.Log; l.Changes != 1 || l.Entries[0].Created.IsZero() || l.Entries[0].Applied[0] != "bigtable" {
		w.t.Errorf("%+v", x.Log)
	}
}
