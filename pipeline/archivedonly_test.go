package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// archivedOnly makes a world of tables without a target, whose deletions by TTL go into objects.
func archivedOnly(t *testing.T) (*world, bucket.Bucket) {
	w := newWorld(t)
	b, err := bucket.Open(t.Context(), "file://"+t.TempDir(), bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	w.archive, w.onTTL = &archiving.Place{
		Objects: b, Form: object.Options{Format: object.Parquet, Pipeline: "shop"}, Once: new(archiving.Once),
		Roll: time.Second, Scratch: t.TempDir(),
	}, "archive"
	w.opts = func(o *pipeline.Options) {
		for i := range o.Tables {
			o.Tables[i].Target, o.Tables[i].Backfill.From = "", "none"
		}
	}
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	return w, b
}

// expireOrders lets items expire that no others are.
func (w *world) expireOrders(from, until int) {
	w.t.Helper()
	for i := from; i < until; i++ {
		w.put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	}
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
}

// objectEvents returns how often each item is in the objects of a bucket.
func objectEvents(t *testing.T, b bucket.Bucket) map[string]int {
	t.Helper()
	all := map[string]int{}
	for info, err := range b.List(t.Context(), "tr_table=Orders/") {
		if err != nil {
			t.Fatal(err)
		}
		r, err := b.Open(t.Context(), info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range object.Read(r, r.Size()) {
			if err != nil {
				t.Fatal(err)
			}
			all[e.Subject]++
		}
		r.Close()
	}
	return all
}

// untilArchived waits until so many items are in objects, and fails if one is there twice.
func (r *run) untilArchived(b bucket.Bucket, n int) {
	r.t.Helper()
	var all map[string]int
	r.until(fmt.Sprintf("%d items are archived", n), func() bool {
		r.clock.Advance(2 * time.Second)
		all = objectEvents(r.t, b)
		return len(all) >= n
	})
	for subject, times := range all {
		if times != 1 {
			r.t.Errorf("%s is archived %d times", subject, times)
		}
	}
	if len(all) != n {
		r.t.Errorf("%d items are archived, want %d", len(all), n)
	}
}

// TestTableWithoutTargetIsOnlyArchived: Bigtable is never asked, what users delete is not archived,
// and a restart goes on where the last run stopped.
func TestTableWithoutTargetIsOnlyArchived(t *testing.T) {
	long(t, "2 s")
	w, b := archivedOnly(t)
	w.front.Close() // Bigtable is away, and nobody misses it
	r := w.restart("Orders")
	w.put("Orders", "user", "1", `"v":{"N":"1"}`)
	w.delete("Orders", "user", "1")
	w.expireOrders(0, 20)
	r.untilArchived(b, 20)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.expireOrders(20, 30)
	r = w.restart("Orders")
	r.untilArchived(b, 30)
	// The clock ran ahead of the last beat: ready comes with the next one.
	r.until("it is ready", func() bool { ok, _ := r.p.Ready(); return ok })
}

// TestRecoveryOfATableWithoutTarget: the lost log is refused until recover begins a new life in the
// archive's bucket; then what the stream still holds is archived, each item once.
func TestRecoveryOfATableWithoutTarget(t *testing.T) {
	long(t, "3 s")
	w, b := archivedOnly(t)
	w.patient()
	r := w.restart("Orders")
	w.expireOrders(0, 20)
	r.untilArchived(b, 20)
	r.kill()
	w.loseVolume()
	w.expireOrders(20, 40)

	r = w.restart("Orders")
	r.refused("the log is empty or not there")
	r.close()
	rows := staterow.NewBucketStore(b)
	row, err := rows.LoadState(t.Context(), "shop", "Orders")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := staterow.PlanRecovery(staterow.Found{
		Row: row, Want: bigtable.Identity{Pipeline: "shop", Table: "Orders", TableID: row.Identity.TableID},
		Date: change.MillisOf(w.clock.Now()), Lead: time.Minute,
	})
	if err != nil || plan == nil {
		t.Fatalf("%+v, %v", plan, err)
	}
	if err := plan.Begin(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	r = w.restart("Orders")
	r.untilArchived(b, 40)
	r.until("the table is well", func() bool { return r.table("Orders").State == "running" })
	w.expireOrders(40, 45)
	r.untilArchived(b, 45)
	row, err = rows.LoadState(t.Context(), "shop", "Orders")
	if err != nil || row.Life != 2 || row.Recovering || !row.Issued {
		t.Errorf("%+v, %v", row, err)
	}
}

// TestTargetIsNotAdded: the items that the table held would be missing.
func TestTargetIsNotAdded(t *testing.T) {
	long(t, "1 s")
	w, _ := archivedOnly(t)
	w.patient()
	r := w.restart("Orders")
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.opts = nil
	w.start("Orders").refused("was started without a target")
}

// TestTargetIsNotTakenAway: its rows would stay as they are, and nobody would know.
func TestTargetIsNotTakenAway(t *testing.T) {
	long(t, "1 s")
	w, _ := archivedOnly(t)
	w.patient()
	without := w.opts
	w.opts = nil
	r := w.start("Orders")
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.opts = without
	w.restart("Orders").refused("has no target any more")
}

// refused waits until the run ends because its state is refused.
func (r *run) refused(says string) {
	r.t.Helper()
	err := <-r.ended
	r.ended <- err
	if err == nil || !strings.Contains(err.Error(), says) {
		r.t.Fatalf("ended with %v, want %q", err, says)
	}
}
