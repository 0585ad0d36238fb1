package pipeline_test

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
)

// TestArchiveIsTurnedOffAndOnAgain: what expired meanwhile was not to be archived. The hours say
// so, and nothing counts as lost.
func TestArchiveIsTurnedOffAndOnAgain(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	b := w.archived()
	w.createExpiring("Orders")
	r := w.start("Orders")
	w.expire("Orders", "on", 20, 20)
	r.archivedOnce(b, "Orders", 0)
	w.clock.Advance(2 * time.Hour)
	r.hastenUntil("a manifest closes the first hour", func() bool { return r.table("Orders").Archive.Head.N > 0 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	place := w.archive
	w.archive = nil
	r = w.restart("Orders")
	w.expire("Orders", "off", 20, 20)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	w.archive = place
	r = w.restart("Orders")
	w.clock.Advance(time.Hour)
	w.expire("Orders", "again", 20, 20)
	r.archivedOnce(b, "Orders", 20)
	w.clock.Advance(2 * time.Hour)
	r.hastenUntil("every hour is closed", func() bool {
		a := r.table("Orders").Archive
		return a != nil && a.Waiting == 0 && a.Closed >= w.clock.Now().Add(-90*time.Minute).UTC().Format(time.RFC3339)
	})
	head := r.table("Orders").Archive.Head
	rep, err := manifest.Verify(t.Context(), b, "Orders", manifest.Options{
		Head: &head, Depth: manifest.Quick, Read: footerOf,
	})
	if err != nil || rep.Verdict != manifest.Unproven || rep.Counts[manifest.HourIncomplete] == 0 {
		t.Errorf("archive verify: %+v, %v", rep, err)
	}
	r.settle()
	r.equal()
}

// TestLogIsLostForLongerThanDynamoDBKeepsRecords: the archive's stream is there, and what expired
// meanwhile is nowhere. The hours say that a recovery was.
func TestLogIsLostForLongerThanDynamoDBKeepsRecords(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	b := w.archived()
	w.createExpiring("Orders")
	r := w.start("Orders")
	w.expire("Orders", "before", 20, 20)
	r.archivedOnce(b, "Orders", 0)
	w.clock.Advance(2 * time.Hour)
	r.hastenUntil("a manifest closes the first hour", func() bool { return r.table("Orders").Archive.Head.N > 0 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.loseLog("Orders")
	w.expire("Orders", "lost", 20, 20)
	lost := layout.HourOf(w.clock.Now())
	w.clock.Advance(30 * time.Hour)
	w.streams.Trim(w.clock.Now().Add(-24 * time.Hour))
	w.recover("Orders")
	r = w.restart("Orders")
	r.recovered()
	w.expire("Orders", "after", 20, 20)
	r.archivedOnce(b, "Orders", 20)
	w.clock.Advance(2 * time.Hour)
	r.hastenUntil("every hour is closed", func() bool {
		a := r.table("Orders").Archive
		return a != nil && a.Waiting == 0 && a.Closed >= w.clock.Now().Add(-90*time.Minute).UTC().Format(time.RFC3339)
	})
	head := r.table("Orders").Archive.Head
	rep, err := manifest.Verify(t.Context(), b, "Orders", manifest.Options{
		Head: &head, Depth: manifest.Quick, Read: footerOf, From: lost, To: lost + 1,
	})
	if err != nil || rep.Verdict != manifest.Unproven || rep.Counts[manifest.HourIncomplete] != 1 {
		t.Errorf("archive verify: %+v, %v", rep, err)
	}
}

// loseLog deletes the log of a table, and nothing else that is kept of it.
func (w *world) loseLog(table string) {
	w.t.Helper()
	r := w.openAs(false, table)
	defer func() {
		r.ended <- nil
		r.close()
	}()
	kept, err := r.queue.Kept(w.t.Context(), table)
	if err == nil {
		err = r.queue.Delete(w.t.Context(), kept[0])
	}
	if err != nil || kept[0].What != "log" {
		w.t.Fatalf("delete the log: %v, %+v", err, kept)
	}
}
