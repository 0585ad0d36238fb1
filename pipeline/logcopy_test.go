package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bt "cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// putBack stops r, which ran since old was copied, and puts that copy back.
func (r *run) putBack(old string) {
	r.t.Helper()
	if err := r.stop(); err != nil {
		r.t.Fatal(err)
	}
	r.dir = old
}

// refusedAsOlder waits until the run has ended because the log is an older copy.
func (r *run) refusedAsOlder() {
	r.t.Helper()
	refused := (*pipeline.RefusedError)(nil)
	if err := r.end(); !errors.As(err, &refused) || refused.Code != outcome.CodeLogOlder ||
		!strings.Contains(refused.Hint, "`replicator recover --table Orders`") {
		r.t.Fatalf("ended with %v, want a log that is an older copy", err)
	}
}

// Attack 97: an older copy of the log's volume is put back. With it a pause would be over that was
// asked for since. It is refused, and what the refusal names makes all well.
func TestOlderCopyOfTheLogIsRefused(t *testing.T) {
	long(t, "starts a pipeline five times")
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	old := w.copyVolume()
	r = w.restart("Orders")
	r.settle()
	w.put("Orders", "b", "1", `"v":{"N":"1"}`)
	r.settle()
	r.control("Orders", &checkpoint.Control{Pause: new(true), By: "test"})
	r.until("it is paused", func() bool { return r.table("Orders").State == "paused" })
	r.putBack(old)
	w.put("Orders", "c", "1", `"v":{"N":"1"}`)
	for range 2 { // a refused copy grows by claims, and stays refused
		r = w.restart("Orders")
		r.refusedAsOlder()
		r.close()
	}
	w.recover("Orders")
	r = w.restart("Orders")
	r.recovered()
	r.kill()
	r = w.restart("Orders")
	w.put("Orders", "d", "1", `"v":{"N":"1"}`)
	r.settle()
	r.equal()
}

// A pipeline reads on without its row. An older copy of the log grows beyond what the row notes
// then; nothing of it is applied, and once Bigtable answers the table halts.
func TestOlderCopyThatHasGrownIsRefused(t *testing.T) {
	long(t, "starts a pipeline three times")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	old := w.copyVolume()
	r = w.restart("Orders")
	w.put("Orders", "b", "1", `"v":{"N":"1"}`)
	r.settle()
	noted, rows := r.folded("Orders").Seq, len(r.stored("Orders"))
	r.putBack(old)
	w.front.Faults.Outage(0)
	r = w.restart("Orders")
	for i := 0; r.folded("Orders").Seq <= noted+20; i++ {
		w.put("Orders", "c", "1", `"v":{"N":"1"}`)
		seq := r.folded("Orders").Seq
		r.until("the copy grows", func() bool { return r.folded("Orders").Seq > seq })
	}
	w.front.Faults.Recover()
	r.until("the table is halted", func() bool { return r.table("Orders").Code == outcome.CodeLogOlder })
	if n := len(r.stored("Orders")); n != rows {
		t.Errorf("%d rows, want the %d from before", n, rows)
	}
}

// removeRow deletes the pipeline's row of a table, with all its columns.
func (r *run) removeRow() *bigtable.State {
	r.t.Helper()
	row := r.row("Orders")
	if err := r.sink.RemoveState(r.t.Context(), row); err != nil {
		r.t.Fatal(err)
	}
	return row
}

// TestDeletedRowIsSaidWhileBigtableIsAway, Rule 13: without an answer about the row the table is
// read on, and the halt for the missing row is not over.
func TestDeletedRowIsSaidWhileBigtableIsAway(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	r.removeRow()
	missing := func() bool { return r.table("Orders").Code == outcome.CodeRowMissing }
	r.until("the table is halted", missing)
	w.front.Faults.Outage(0)
	w.put("Orders", "b", "1", `"v":{"N":"1"}`)
	r.until("the table is read on", func() bool { return r.folded("Orders").Changes == 2 })
	for range 2 {
		at := r.folded("Orders").Date
		r.until("a beat is stored", func() bool { return r.folded("Orders").Date > at })
	}
	if h := r.folded("Orders").AllHalts()[outcome.Pipeline]; h == nil || h.Code != outcome.CodeRowMissing || !missing() {
		t.Errorf("the halt is over, and nothing shows that the row is there: %+v, %+v", h, r.table("Orders"))
	}
	w.front.Faults.Recover()
	r.until("the row is read, and the life ends", func() bool { return r.folded("Orders").Released })
	if !missing() {
		t.Errorf("the halt is over: %+v", r.table("Orders"))
	}
	rec, err := r.planRecovery("Orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Begin(t.Context(), r.sink); err != nil {
		t.Fatal(err)
	}
	r.until("the table runs", func() bool { return r.table("Orders").State == "running" })
	r.settle()
	r.equal()
	r.ready()
}

// The row of a table is deleted while a replica runs: the table halts at the next look at it. The
// recovery that the halt names stores the row again, from the log, and the table goes on in its
// life.
func TestDeletedRowHaltsAndIsStoredAgain(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	was := r.removeRow()
	r.until("the table is halted", func() bool { return r.table("Orders").Code == outcome.CodeRowMissing })
	if ready, _ := r.p.Ready(); ready || !strings.Contains(r.table("Orders").Halt, "`replicator recover --table Orders`") {
		t.Errorf("ready %t, halted: %s", ready, r.table("Orders").Halt)
	}
	w.put("Orders", "b", "1", `"v":{"N":"1"}`)
	rec, err := r.planRecovery("Orders")
	if err != nil || rec == nil || !rec.Restores {
		t.Fatalf("%+v, %v", rec, err)
	}
	if err := rec.Begin(t.Context(), r.sink); err != nil {
		t.Fatal(err)
	}
	w.put("Orders", "a", "1", `"v":{"N":"2"}`)
	r.until("the table runs", func() bool { return r.table("Orders").State == "running" })
	r.settle()
	r.equal()
	r.ready()
	row := r.row("Orders")
	if row.Life != was.Life || row.Floor != was.Floor || row.Identity.Target != was.Identity.Target || !row.Issued ||
		!row.Identity.LogCreated.Equal(was.Identity.LogCreated) || row.Identity.MappingHash != was.Identity.MappingHash ||
		row.Identity.TableID != was.Identity.TableID || row.Identity.StreamARN != was.Identity.StreamARN {
		t.Errorf("the row is %+v, and was %+v", row, was)
	}
	if _, err := r.sink.LoadMapping(t.Context(), "shop", "Orders", row.Identity.MappingHash); err != nil {
		t.Errorf("the mapping beside the row: %v", err)
	}
	if top := r.fold("Orders").HighestVersion(); int64(top) > w.clock.Now().Add(row.Lead).UnixMilli() {
		t.Errorf("version %d is beyond what is reserved, %s", top, row.Lead)
	}
}

// The whole table of rows is deleted while a replica runs: its tables halt at the next look, and
// say what makes it again. Then the recovery that they name stores each row again.
func TestDeletedStateTableHaltsAndIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	names := []string{"Orders", "Others"}
	for _, name := range names {
		w.createTable(name)
	}
	r := w.start(names...)
	for _, name := range names {
		w.put(name, "a", "1", `"v":{"N":"1"}`)
	}
	r.settle()
	r.administer(func(admin *bt.AdminClient) error {
		return admin.DeleteTable(t.Context(), tableschema.StateTable)
	})
	halted := func(says string) {
		t.Helper()
		for _, name := range names {
			r.until(name+" is halted", func() bool {
				st := r.table(name)
				return st.State == "halted" && strings.Contains(st.Halt, says) && (st.Code == outcome.CodeRowMissing ||
					st.Code == outcome.CodeMissing)
			})
		}
		if ready, _ := r.p.Ready(); ready {
			t.Error("ready without its rows")
		}
	}
	halted("`replicator schema --apply`")
	w.put("Orders", "b", "1", `"v":{"N":"1"}`)
	if _, err := r.sink.Ensure(t.Context(), tableschema.Tables(nil, 7*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	halted("`replicator recover --table")
	for _, name := range names {
		rec, err := r.planRecovery(name)
		if err != nil || rec == nil || !rec.Restores {
			t.Fatalf("%s: %+v, %v", name, rec, err)
		}
		if err := rec.Begin(t.Context(), r.sink); err != nil {
			t.Fatal(err)
		}
	}
	w.put("Others", "a", "1", `"v":{"N":"2"}`)
	r.settle()
	r.equal()
	r.ready()
	for _, name := range names {
		target := strings.ToLower(name)
		if owner, err := r.sink.TargetOwner(t.Context(), target); err != nil || owner != "shop" {
			t.Errorf("target %s belongs to %q, %v", target, owner, err)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = w.restart(names...)
	w.put("Others", "c", "1", `"v":{"N":"2"}`)
	r.settle()
	r.equal()
}

// Replicas whose logs are on an external server: a deleted row, and an older copy of that server's
// store, halt them as they halt a single one.
func TestReplicasOfAnExternalServerRefuseStoredState(t *testing.T) {
	long(t, "two replicas, and a server that is started four times")
	w := newWorld(t)
	w.createTable("Orders")
	server := startNATS(t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL = "", server.url }
	n := 0
	w.opts = func(o *pipeline.Options) { n++; o.Owner = fmt.Sprint("replica-", n) }
	r := w.start("Orders")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	replicas := []*run{r, w.restart("Orders")}
	halted := func(code string) {
		t.Helper()
		r.until("a replica is halted", func() bool {
			return slices.ContainsFunc(replicas, func(r *run) bool { return r.table("Orders").Code == code })
		})
	}

	r.removeRow()
	halted(outcome.CodeRowMissing)
	rec, err := r.planRecovery("Orders")
	if err != nil || rec == nil || !rec.Restores {
		t.Fatalf("%+v, %v", rec, err)
	}
	if err := rec.Begin(t.Context(), r.sink); err != nil {
		t.Fatal(err)
	}
	applied := func(key string) {
		t.Helper()
		w.put("Orders", key, "1", `"v":{"N":"1"}`)
		r.untilEqual("Orders")
	}
	applied("b")

	with := func(dir string) {
		t.Helper()
		if err := server.srv.Close(); err != nil {
			t.Fatal(err)
		}
		server.o.Dir = dir
		server.open()
	}
	newest, old := server.o.Dir, filepath.Join(t.TempDir(), "old")
	if err := server.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(old, os.DirFS(newest)); err != nil {
		t.Fatal(err)
	}
	server.open()
	applied("c")
	grown := r.folded("Orders").Seq
	r.until("the end of the log is noted", func() bool {
		note, err := r.sink.LoadLogNote(t.Context(), "shop", "Orders")
		return err == nil && note != nil && note.Seq >= grown
	})
	with(old)
	w.put("Orders", "d", "1", `"v":{"N":"1"}`)
	halted(outcome.CodeLogOlder)
	if len(r.stored("Orders")["d#1"]) > 0 {
		t.Error("something was applied from the older copy")
	}
	with(newest)
	r.untilEqual("Orders")
}
