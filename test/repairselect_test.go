package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
)

// TestBothSpellingsOfARepair plants a wrong cell again and again, and has it repaired by each
// selector, as repair and as its alias. A look first changes nothing.
func TestBothSpellingsOfARepair(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t, 843)
	w.tables = []string{"{source: Orders, target: orders}"}
	w.prepare("Orders")
	w.Call("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	w.Clock.Advance(2 * time.Second)
	since := w.Clock.Now()
	w.Put("Orders", "hats", "fedora", `"a":{"S":"right"}`)
	w.Put("Orders", "hats", "beret", `"a":{"S":"right"}`)
	w.write("keys.jsonl", `{"pk":"hats","sk":"fedora"}`)
	w.refused(3, "run", "repair", "--table", "Orders", "--dry-run")
	w.refused(3, "run", "repair", "--keys", "keys.jsonl")
	d := w.run()
	d.settle("Orders")
	w.Clock.Advance(20 * time.Minute)
	url := w.exportChanges("Orders", since)
	d.settle("Orders")
	table, keys := []string{"--table", "Orders"}, []string{"--table", "Orders", "--keys", "keys.jsonl"}
	exported := []string{"--table", "Orders", "--from-export", url}
	for _, x := range []struct {
		items, written, equal int // a single item is written without a comparison
		flags                 []string
		alone                 string // what a look says
	}{{2, 1, 2, table, "the whole table would be compared with orders, about "},
		{1, 1, 0, keys, "1 item would be looked at"}, {2, 2, 0, exported, "2 items would be looked at"}} {
		w.spoil(d)
		r := d.hastened(append([]string{"repair", "--dry-run"}, x.flags...)...)
		w.explains(r, 0, x.alone, "Nothing was changed")
		if r = d.hastened("verify"); r.code != 4 {
			t.Errorf("%v: a look has repaired: exit %d, %s%s", x.flags, r.code, r.out, r.err)
		}
		done := d.repaired(append([]string{"repair", "--json"}, x.flags...)...)
		want := fmt.Sprintf("Orders: %d items, %d written, %d equal", x.items, x.written, x.equal)
		repaired := fmt.Sprintf("; 1 table: %d of %d repaired", x.items, x.items)
		if got := done.String(); got != want+repaired {
			t.Errorf("%v: %s, want %s", x.flags, got, want+repaired)
		}
		w.Equal("Orders")
		w.spoil(d)
		done = d.repaired(append([]string{"resync", "--wait", "--json"}, x.flags...)...)
		if got := done.String(); got != want+"; no tables" {
			t.Errorf("resync %v: %s, want %s", x.flags, got, want)
		}
		w.Equal("Orders")
	}
	w.asksOnly(d, table, keys)
	d.stop()
	w.Equal("Orders")
}

// spoil changes a cell behind the replicator's back, at a time at which a repair may write it.
func (w *world) spoil(d *daemon) {
	w.t.Helper()
	w.plant("Orders", "hats#fedora", func(m *cloud.Mutation) {
		m.Set("d", "a", cloud.Time(w.Clock.Now()), []byte("wrong"))
	})
	w.Clock.Advance(2 * time.Minute) // what was written less than a minute ago is hot
	d.settle("Orders")
}

// asksOnly runs repair and its alias without waiting: both give the id of what they ask for.
func (w *world) asksOnly(d *daemon, table, keys []string) {
	w.t.Helper()
	with := func(all []string, first ...string) []string { return append(first, all...) }
	for _, args := range [][]string{with(keys, "repair", "--no-wait", "--json"), with(keys, "resync", "--json")} {
		if out := w.ok(args...); !strings.Contains(out, `"requests":["`) || !strings.Contains(out, `"items":1,`) {
			w.t.Errorf("%v: %s", args, out)
		}
	}
	if out := w.ok(with(keys, "repair", "--no-wait")...); !strings.Contains(out, "1 item asked for: 1 request.\n  ") {
		w.t.Error(out)
	}
	last := ""
	for _, args := range [][]string{with(table, "repair", "--no-wait", "--json"), with(table, "resync", "--json")} {
		var asked struct{ Table, Resync string }
		out := w.ok(args...)
		if err := json.Unmarshal([]byte(out), &asked); err != nil || asked.Table != "Orders" || asked.Resync == "" ||
			asked.Resync == last {
			w.t.Errorf("%v: %v: %s", args, err, out)
		}
		last = asked.Resync
	}
	d.until("nothing is resynced any more", func() bool {
		d.hasten(2 * time.Second)
		return d.table("Orders").ResyncSince == nil
	})
	d.settle("Orders")
}

// repairedObject is what repair and resync print with --json.
type repairedObject struct {
	Schema                       int
	Table                        string
	Items, Written, Equal        int64
	Left, Hot, Letters, Unproven int64
	Tables                       []struct{ Items, Repaired int64 }
}

func (r repairedObject) String() string {
	text := fmt.Sprintf("%s: %d items, %d written, %d equal", r.Table, r.Items, r.Written, r.Equal)
	if open := r.Left + r.Hot + r.Letters + r.Unproven; open > 0 {
		text += fmt.Sprintf(", %d open", open)
	}
	if r.Tables == nil {
		return text + "; no tables"
	}
	text += fmt.Sprintf("; %d table", len(r.Tables))
	for _, t := range r.Tables {
		text += fmt.Sprintf(": %d of %d repaired", t.Repaired, t.Items)
	}
	return text
}

// repaired runs a command that repairs everything, and returns its object of --json.
func (d *daemon) repaired(args ...string) (x repairedObject) {
	d.w.t.Helper()
	r := d.hastened(args...)
	if err := json.Unmarshal([]byte(r.out), &x); err != nil || r.code != 0 || x.Schema != 1 {
		d.w.t.Fatalf("%v: exit %d, %v: %s%s", args, r.code, err, r.out, r.err)
	}
	return x
}
