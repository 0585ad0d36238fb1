package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/transform"
)

// Attack 67: heartbeats prove that nothing more was written, while nothing else is. They forbid no
// certificate, which rests on them, and they are in no row of Bigtable, although they are items of
// the table.
func TestHeartbeatsProveACutover(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t, 751)
	w.tables = []string{`{source: Orders, target: orders, backfill: none, heartbeat: {prefix: "_beat#", every: 1s}}`}
	w.prepare("Orders")
	for _, sk := range []string{"fedora", "beret", "cap"} {
		w.Put("Orders", "hats", sk, `"n":{"N":"1"}`)
	}
	d := w.run()
	d.settle("Orders")
	written := w.Clock.Now()
	d.until("heartbeats prove that everything is applied", func() bool {
		st := d.table("Orders")
		if st.Proof == status.Proven && st.ProvenThrough.After(written) {
			return true
		}
		d.hasten(300 * time.Millisecond)
		return false
	})
	if st := d.table("Orders"); st.Changes != 3 || st.DeadLetters != 0 {
		t.Errorf("heartbeats are counted: %+v", st)
	}
	if r := d.hastened("verify"); r.code != 0 || !strings.Contains(r.out, "are equal: 3 items") {
		t.Errorf("verify: exit %d, %s%s", r.code, r.out, r.err)
	}
	x := provenCutover(w, d)
	for _, shard := range x.Tables[0].Shards {
		if shard.Idle != "proven" {
			t.Errorf("a shard is idle as %s", shard.Idle)
		}
	}
	if x.Tables[0].Idle != "proven" || !strings.Contains(strings.Join(x.Says, " "), "is proven: a heartbeat") {
		t.Errorf("certificate: %+v", x)
	}
	if items := w.Items("Orders"); len(items) <= 3 {
		t.Errorf("the table has %d items, and no heartbeat", len(items))
	}
	rows := w.openPair().cellsIn("d", transform.LiveFamily, transform.DeadFamily)
	for row := range rows {
		if !strings.HasPrefix(row, "hats#") {
			t.Errorf("a heartbeat is in row %q", row)
		}
	}
	if len(rows) != 3 {
		t.Errorf("%d rows", len(rows))
	}
	d.stop()
}

// TestHeartbeatsOfAFoundTableAreNoRows: also those of a table that begins while the daemon runs.
func TestHeartbeatsOfAFoundTableAreNoRows(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t, 752)
	w.testing = strings.Replace(periods("300ms"), "{", "{find: 200ms, ", 1)
	w.tables = []string{
		`{source: "orders-*", target: "{table}", backfill: none, heartbeat: {prefix: "_beat#", every: 1s}}`,
	}
	w.CreateTable("orders-eu")
	w.configure()
	w.ok("schema", "--apply")
	d := w.run()
	d.settle("orders-eu")
	w.CreateTable("orders-us")
	w.ok("schema", "--apply")
	w.Put("orders-us", "hats", "fedora", `"n":{"N":"1"}`)
	d.settle("orders-us")
	written := w.Clock.Now()
	d.until("heartbeats prove that everything is applied", func() bool {
		st := d.table("orders-us")
		if st.Proof == status.Proven && st.ProvenThrough.After(written) {
			return true
		}
		d.hasten(300 * time.Millisecond)
		return false
	})
	if st := d.table("orders-us"); st.Changes != 1 || len(w.Items("orders-us")) < 2 {
		t.Errorf("%d changes of %d items", st.Changes, len(w.Items("orders-us")))
	}
	if rows := w.openPair().stored("orders-us", []transform.Family{{Name: "d"}}); len(rows) != 1 {
		t.Errorf("a heartbeat is a row: %v", rows)
	}
	d.stop()
}

// idle is what a certificate says about what was not written.
type idle struct {
	Tables []struct {
		Idle   string
		Shards []struct{ Idle string }
	}
	Says []string
}

// provenCutover runs a cutover of Orders, and returns the certificate. A cutover does not wait for
// heartbeats for ever: on a machine that is too busy for them it is run again.
func provenCutover(w *world, d *daemon) idle {
	w.t.Helper()
	for tries := 1; ; tries++ {
		w.cutover(d, 0, "3 items are equal")
		var file struct{ Certificate idle }
		b, err := os.ReadFile(filepath.Join(w.dir, "cert.json"))
		if err == nil {
			err = json.Unmarshal(b, &file)
		}
		if err != nil || len(file.Certificate.Tables) != 1 || len(file.Certificate.Tables[0].Shards) == 0 {
			w.t.Fatalf("certificate: %s, %v", b, err)
		}
		if file.Certificate.Tables[0].Idle == "proven" || tries == 5 {
			return file.Certificate
		}
	}
}
