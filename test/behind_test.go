package test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// Attack 92. A writer that was forgotten writes to DynamoDB behind a certified fence: the table is
// not ready, everything that shows its state says how much that is, and `table retire`, which would
// delete the only copy, is refused until exactly so many changes are waived. What TTL deletes there
// does not count.
func TestWriteBehindACertifiedFenceIsToldAndNotDeleted(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t, 714)
	w.prepare("Orders")
	for _, sk := range []string{"fedora", "beret", "cap"} {
		w.Put("Orders", "hats", sk, `"n":{"N":"1"}`)
	}
	w.Put("Orders", "hats", "old", `"n":{"N":"1"},"expires":{"N":"`+w.seconds()+`"}`)
	d := w.run()
	d.settle("Orders")
	w.cutover(d, 0, "4 items are equal")
	d.until("the certificate is noted", func() bool { return d.ready() && d.table("Orders").Fence.Certified != nil })
	out := w.ok("status")
	if !strings.Contains(out, "certified at ") || strings.Contains(out, "goes on to the certificate") {
		t.Errorf("status behind the certificate: %s", out)
	}

	w.Clock.Advance(time.Minute)
	if w.DynamoDB.ExpireNow(w.Clock.Now()) != 1 {
		t.Fatal("nothing has expired")
	}
	d.until("the deletion is read", func() bool { return d.table("Orders").Changes == 5 })
	if st := d.table("Orders"); !d.ready() || st.State != "fenced" || st.BehindFence != nil {
		t.Errorf("a deletion by TTL behind the fence: %+v, %+v", st, st.BehindFence)
	}
	if r := d.hastened("status", "--wait", "applied=now"); r.code != 0 {
		t.Errorf("wait behind a deletion by TTL: exit %d\n%s%s", r.code, r.out, r.err)
	}
	before := w.Clock.Now().Add(-time.Second)
	w.Put("Orders", "hats", "straggler", `"n":{"N":"2"}`)
	w.Put("Orders", "hats", "cap", `"n":{"N":"2"}`)
	d.until("the writes are read", func() bool {
		d.hasten(300 * time.Millisecond)
		return d.table("Orders").Changes == 7
	})
	st := d.table("Orders")
	if d.ready() || st.State != status.WrittenBehindFence || st.BehindFence == nil || st.BehindFence.Changes != 2 ||
		st.BehindFence.Since.Before(before.Truncate(time.Second)) {
		t.Errorf("two writes behind the fence: ready %v, %+v, %+v", d.ready(), st, st.BehindFence)
	}
	if r := d.hastened("status", "--wait", "applied=now", "--json"); r.code != 4 ||
		!strings.Contains(r.out, `{"code":"behind_fence","count":2,"table":"Orders"}`) {
		t.Errorf("wait behind two writes: exit %d\n%s%s", r.code, r.out, r.err)
	}
	if n := d.scrape()["tailrace_changes_behind_fence"]; len(n) != 1 || slices.Max(slices.Collect(maps.Values(n))) != 2 {
		t.Errorf("the metric says %v", n)
	}
	said := w.command("status", "--exit-code", "--json")
	var all pipeline.Status
	if err := json.Unmarshal([]byte(said.out), &all); err != nil || said.code != 1 || all.Ready ||
		len(all.Tables[0].BehindFence.KeyHashes) != 2 {
		t.Errorf("status: exit %d, %v\n%s", said.code, err, said.out)
	}
	w.cutover(d, 4, "was written to behind the fence")

	d.stop()
	retire := []string{"table", "retire", "--table", "Orders", "--yes"}
	r := w.command(retire...)
	if r.code != 3 || !strings.Contains(r.err, "2 changes behind the fence of Orders") ||
		!strings.Contains(r.err, "--drop-changes 2") || strings.Contains(r.err, "straggler") {
		t.Errorf("retire: exit %d\n%s%s", r.code, r.out, r.err)
	}
	for _, hash := range all.Tables[0].BehindFence.KeyHashes {
		if !strings.Contains(r.err, hash) {
			t.Errorf("retire does not name %s:\n%s", hash, r.err)
		}
	}
	w.refused(3, "2 changes behind the fence of Orders", append(retire, "--drop-changes", "1")...)
	w.refused(3, "2 changes behind the fence of Orders", append(retire, "--drop-changes", "3")...)
	dump := []string{"queue", "dump", "--table", "Orders", "--key", `{"pk":{"S":"hats"},"sk":{"S":"straggler"}}`}
	if out := w.ok(dump...); strings.Count(out, "\n") != 1 {
		t.Errorf("a refused retire has deleted it: %s", out)
	}
	out = w.ok(append(retire, "--drop-changes", "2")...)
	if !strings.Contains(out, "2 changes in the log since ") {
		t.Errorf("retire: %s", out)
	}
	w.refused(3, "was retired at", "verify")
}
