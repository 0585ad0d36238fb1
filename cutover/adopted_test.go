package cutover_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// A retirement by mistake is undone by `run --adopt`, also at once: the rows have guards that a
// burst ran ahead of the time, the floor is above them, the copy writes at the floor, and the first
// change of each shard is above the copy.
func TestRetirementByMistakeIsUndone(t *testing.T) {
	w := newSharedWorld(t, 946)
	only := strings.Replace(orders, "none", "scan", 1)
	w.Configure(only)
	for i := range 8 {
		w.Put("Orders", fmt.Sprint("p", i), "1", `"n":{"N":"1"}`)
	}
	w.Clock.Advance(25 * time.Hour) // no shard has a record any more
	d := w.Run()
	d.Settle()
	ahead := w.Clock.Now().Add(8 * time.Minute)
	for i := range 8 {
		w.guardAt(fmt.Sprintf("o#p%d#1", i), ahead)
	}
	d.Stop()
	w.Configure(other)
	if _, err := w.retire(cutover.RetireOptions{}); err != nil {
		t.Fatal(err)
	}
	sink := w.Sink(w.Clients())
	retired, err := sink.Retired(t.Context(), "shared")
	if as, ok := retired["Orders"]; !ok || err != nil || as.Floor < change.Version(change.MillisOf(ahead)) {
		t.Fatalf("%+v, %v: guards reach %s", retired, err, ahead)
	}

	w.Configure(only)
	w.Adopt = true
	d = w.Run()
	d.Settle() // the copy
	if now := w.Clock.Now(); now.After(ahead) {
		t.Fatalf("the copy is complete at %s, behind the guards at %s", now, ahead)
	}
	for i := range 8 {
		w.Put("Orders", fmt.Sprint("p", i), "1", `"n":{"N":"2"}`)
	}
	d.Settle()
	if x := w.verify("Orders"); x.Verdict != report.Equal || x.Items != 8 {
		t.Errorf("%+v", x)
	}
}

// guardAt moves the guard of a row's item to a time.
func (w *sharedWorld) guardAt(row string, at time.Time) {
	w.t.Helper()
	w.edit(func(table *cloud.Table) error {
		stored, err := table.ReadRow(w.t.Context(), row, cloud.RowFilter(cloud.FamilyFilter("_tr_live")))
		if err != nil || len(stored["_tr_live"]) != 1 {
			return fmt.Errorf("guards %v of %s: %w", stored, row, err)
		}
		guard := stored["_tr_live"][0]
		_, qualifier, _ := strings.Cut(guard.Column, ":")
		m := cloud.NewMutation()
		m.Set("_tr_live", qualifier, cloud.Time(at), guard.Value)
		return table.Apply(w.t.Context(), row, m)
	})
}

// A table that is given up without a cutover: what the log holds and no replicator has applied is
// lost with it, so the refusal names the number, which must be waived.
func TestChangesThatWereNeverAppliedAreNotDeletedUnasked(t *testing.T) {
	w := newSharedWorld(t, 947)
	w.Configure(orders)
	w.Config.ShutdownTimeout = config.Duration(time.Second)
	w.Put("Orders", "p", "1", `"n":{"N":"1"}`)
	d := w.Run()
	d.Settle()
	w.Bigtable.Faults.Outage(0)
	for _, n := range []string{"2", "3"} {
		w.Put("Orders", "p", "1", `"n":{"N":"`+n+`"}`)
	}
	w.Put("Orders", "p", "2", `"n":{"N":"2"}`)
	w.Until("they are in the log", func() bool {
		w.Clock.Advance(100 * time.Millisecond)
		return d.Table("Orders").Changes == 4
	})
	d.Stop()                          // what is not applied in time stays in the log
	w.Clock.Advance(10 * time.Second) // a slow one may not have released the log: its claim ends
	w.Bigtable.Faults.Recover()
	w.Configure(other)
	for _, n := range []uint64{0, 2, 4} {
		_, err := w.retire(cutover.RetireOptions{DropChanges: n})
		if err == nil || !strings.Contains(err.Error(), "3 changes in the log of Orders since ") {
			t.Errorf("waiving %d: %v", n, err)
		}
	}
	kept, err := w.retire(cutover.RetireOptions{DropChanges: 3})
	if err != nil || kept.Unapplied == nil || kept.Unapplied.Changes != 3 || len(kept.Unapplied.KeyHashes) != 2 {
		t.Errorf("%+v, %+v, %v", kept, kept.Unapplied, err)
	}
}

// A cutover that was interrupted leaves its fence: what it drains was read before the fence and is
// not applied yet. The fence is no reason to delete it unasked, and what the application wrote
// behind the fence counts beside it.
func TestChangesThatAnInterruptedCutoverHasNotDrainedAreNotDeletedUnasked(t *testing.T) {
	w := newSharedWorld(t, 948)
	w.Configure(orders)
	w.Config.ShutdownTimeout = config.Duration(time.Second)
	w.Put("Orders", "p", "1", `"n":{"N":"1"}`)
	d := w.Run()
	d.Settle()
	w.Bigtable.Faults.Outage(0)
	for i := range 3 {
		w.Put("Orders", "p", fmt.Sprint(2+i), `"n":{"N":"2"}`)
	}
	inLog := func(changes uint64) func() bool {
		return func() bool {
			w.Clock.Advance(100 * time.Millisecond)
			return d.Table("Orders").Changes == changes
		}
	}
	w.Until("they are in the log", inLog(4))
	_, err := w.Log("Orders").Append(t.Context(), "fence",
		checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: "cut"}})
	if err != nil {
		t.Fatal(err)
	}
	w.Put("Orders", "p", "stray", `"n":{"N":"3"}`)
	w.Until("the write behind the fence is in the log", inLog(5))
	d.Stop()
	w.Clock.Advance(10 * time.Second) // a slow one may not have released the log: its claim ends
	w.Bigtable.Faults.Recover()
	w.EditRow("Orders", func(s *bigtable.State) { s.Fenced = &bigtable.Fenced{ID: "cut", Time: w.Clock.Now()} })
	for _, n := range []uint64{0, 1, 3, 5} {
		_, err := w.retire(cutover.RetireOptions{DropChanges: n})
		if err == nil || !strings.Contains(err.Error(), "4 changes in the log of Orders since ") {
			t.Errorf("waiving %d: %v", n, err)
		}
	}
	kept, err := w.retire(cutover.RetireOptions{DropChanges: 4})
	if err != nil || kept.Unapplied == nil || kept.Unapplied.Changes != 4 || len(kept.Unapplied.KeyHashes) != 4 {
		t.Errorf("%+v, %+v, %v", kept, kept.Unapplied, err)
	}
}

// The log holds what expired until the archive's stream has it: while that stream cannot be opened
// it is the last copy, also of what expired behind a fence.
func TestDeletionsThatTheArchiveLacksAreNotDeletedUnasked(t *testing.T) {
	w := newSharedWorld(t, 949)
	w.Window = "1h" // no mark of an archive keeps the log from being trimmed
	w.Configure(orders)
	w.Call("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"AttributeName":"expires","Enabled":true}}`)
	d := w.Run()
	for i := range 3 {
		w.Put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"n":{"N":"1"},"expires":{"N":"%d"}`, w.Clock.Now().Unix()-1))
	}
	d.Settle()
	d.Stop()
	before := w.Log("Orders").State.Marks[checkpoint.SinkBigtable]
	if n := w.DynamoDB.ExpireNow(w.Clock.Now()); n != 3 {
		t.Fatalf("%d items expired", n)
	}
	d = w.Run()
	d.Settle()
	d.Stop()
	owner, err := w.Log("Orders").Log.Claim(t.Context(), queue.ClaimOptions{Owner: "archive", TTL: time.Second})
	if err == nil {
		_, err = owner.Append(t.Context(), &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{"archive": before}}, nil)
	}
	if err == nil {
		err = owner.Release(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Configure(other)
	_, err = w.retire(cutover.RetireOptions{})
	if err == nil || !strings.Contains(err.Error(), "3 deletions of Orders are not in an object of the archive yet") {
		t.Errorf("not waived: %v", err)
	}
	if _, err := w.retire(cutover.RetireOptions{DropLetters: true}); err != nil {
		t.Errorf("waived: %v", err)
	}
}
