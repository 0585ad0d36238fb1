package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// fenceRow stores in the row of a table that it is fenced; "" for not fenced.
func (r *run) fenceRow(table, id string) {
	r.t.Helper()
	for {
		row := r.row(table)
		next := *row
		if next.Fenced = nil; id != "" {
			next.Fenced = &bigtable.Fenced{ID: id, Time: r.clock.Now().UTC()}
		}
		err := r.sink.CompareAndSet(r.t.Context(), row, &next)
		if err == nil {
			return
		}
		if !errors.Is(err, bigtable.ErrStateChanged) { // the owner was faster
			r.t.Fatal(err)
		}
	}
}

// fence fences a table as a cutover does.
func (r *run) fence(table, id string) {
	r.t.Helper()
	r.fenceRow(table, id)
	r.control(table, &checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: id}, At: change.MillisOf(r.clock.Now())})
}

// undoFence takes the fence away as a cutover does.
func (r *run) undoFence(table, id string) {
	r.t.Helper()
	r.control(table, &checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: id, Undo: true}})
	r.fenceRow(table, "")
}

// standing waits until the sink of this process stands at the fence, for the nth time.
func (r *run) standing(nth int) {
	r.t.Helper()
	r.hastenUntil("the sink stands at the fence", func() bool {
		stands := r.logged.FilterMessage("the sink stands at the fence of a cutover")
		return stands.Len() >= nth && r.fold("Orders").StandsAtFence()
	})
}

// Attack 44, 67: behind the fence nothing reaches Bigtable, whoever owns the log and after any
// restart. Reading and the archive go on, and the table is red only because the application still
// writes.
func TestNothingIsAppliedBehindAFence(t *testing.T) {
	long(t, "three owners")
	w := newWorld(t)
	archive := &flakyArchive{events: map[string]int{}}
	w.archive, w.onTTL = &archiving.Place{Subject: archive}, "archive"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	for i := range 5 {
		w.put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	}
	r.settle()
	before := r.stored("Orders")
	r.fence("Orders", "f1")
	r.standing(1)
	expired := 0
	behind := func(nth int) {
		t.Helper()
		w.put("Orders", "q", fmt.Sprint(nth), `"v":{"S":"1"}`)
		w.put("Orders", "ttl", fmt.Sprint(nth), fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
		w.clock.Advance(time.Minute)
		w.tables.ExpireNow(w.clock.Now())
		if expired++; nth == 1 {
			expired += 5
		}
		r.hastenUntil("the archive goes on", func() bool { _, n := archive.counts(); return n == expired })
		r.standing(nth)
		if diff := cmp.Diff(before, r.stored("Orders")); diff != "" {
			t.Fatalf("rows behind the fence, owner %d (-before +after):\n%s", nth, diff)
		}
	}
	behind(1)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n := w.logged.FilterMessageSnippet("not drained in time").Len(); n > 0 {
		t.Error("the drain waited for what is behind the fence")
	}
	r = w.restart("Orders")
	behind(2)
	r.kill()
	r = w.restart("Orders")
	behind(3)
	written := func(st *pipeline.TableStatus) bool { // two puts of each owner; what TTL deletes does not count
		return st.State == status.WrittenBehindFence && st.BehindFence.Changes == 6 && len(st.Reasons) == 1 &&
			strings.Contains(st.Reasons[0], "written to behind the fence of cutover f1: 6 changes since ")
	}
	r.hastenUntil("what is written behind the fence is red, and nothing else", func() bool {
		st := r.table("Orders")
		return st.Fence.Reached && st.Fence.ID == "f1" && written(&st)
	})
	w.clock.Advance(time.Hour) // far more than a lag may be
	var st pipeline.TableStatus
	r.hastenUntil("it is read on, and nothing else is red", func() bool {
		st = r.table("Orders")
		return st.SourceLag < 60 && written(&st)
	})
	if st.AppliedLag > 60 {
		t.Errorf("%v s behind the fence", st.AppliedLag)
	}
	r.undoFence("Orders", "f1")
	r.hastenUntil("the fence is gone", func() bool { return r.table("Orders").State == "running" })
	r.settle()
	r.equal()
	r.ready()
}

// A stream that is disabled and enabled again behind the fence is followed by the next one: reading
// goes on, so that what the application writes is counted. Nothing of it reaches Bigtable before
// the undo, then all of it does.
func TestNextStreamIsReadBehindAFence(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.onGap = "heal"
	r := w.start("Orders")
	w.put("Orders", "p", "1", `"v":{"S":"before"}`)
	r.settle()
	before := r.stored("Orders")
	r.fence("Orders", "f1")
	r.standing(1)
	w.put("Orders", "p", "1", `"v":{"S":"behind"}`)
	r.hastenUntil("it is counted", func() bool { b := r.table("Orders").BehindFence; return b != nil && b.Changes == 1 })
	w.post("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
	w.put("Orders", "p", "2", `"v":{"S":"in no stream"}`)
	w.post("UpdateTable",
		`{"TableName":"Orders","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	r.hastenUntil("the next stream is read", func() bool { return len(r.fold("Orders").Streams) == 2 })
	w.put("Orders", "p", "3", `"v":{"S":"in the next stream"}`)
	r.hastenUntil("it is counted", func() bool { return r.table("Orders").BehindFence.Changes == 2 })
	if diff := cmp.Diff(before, r.stored("Orders")); diff != "" {
		t.Fatalf("rows behind the fence (-before +after):\n%s", diff)
	}
	r.undoFence("Orders", "f1")
	r.hastenUntil("the gap is healed", func() bool {
		s := r.fold("Orders")
		return s.Fence == nil && s.OpenGaps() == 0 && s.Resync == nil && s.DiffersSince() == 0
	})
	r.settle()
	r.equal()
}

// Attack 66: a fenced table whose log is lost stays as it is. Nothing writes what DynamoDB holds
// over what the application has written to Bigtable since.
func TestLostLogOfAFencedTableIsNotRecovered(t *testing.T) {
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "p", "1", `"v":{"S":"old"}`)
	r.settle()
	r.fence("Orders", "f1")
	r.standing(1)
	r.kill()
	w.loseVolume()
	r = w.restart("Orders")
	refused := (*pipeline.RefusedError)(nil)
	if err := r.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "cutover --undo") {
		t.Fatalf("run: %v", err)
	}
	if rec, err := r.planRecovery("Orders"); rec != nil || !errors.As(err, &refused) ||
		!strings.Contains(refused.Hint, "cutover --undo") {
		t.Errorf("recover: %+v, %v", rec, err)
	}
	r.fenceRow("Orders", "")
	if rec, err := r.planRecovery("Orders"); rec == nil || err != nil {
		t.Errorf("recover after the undo: %+v, %v", rec, err)
	}
}

// The fence is raised in the row first and taken away there last. Between the two steps, whoever
// owns the table applies nothing.
func TestFencedRowOverALogWithoutItIsRefused(t *testing.T) {
	long(t, "waits for an undo that does not come")
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "p", "1", `"v":{"S":"1"}`)
	r.settle()
	r.kill()
	r = w.openAs(false, "Orders")
	r.fenceRow("Orders", "f1")
	r.begin()
	refused := (*pipeline.RefusedError)(nil)
	if err := r.end(); !errors.As(err, &refused) || !strings.Contains(refused.What, "does not hold that fence") {
		t.Fatalf("the log is not fenced yet: %v", err)
	}
	r.control("Orders", &checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: "f1"}})
	r.kill()
	r = w.restart("Orders")
	r.standing(1)
	w.put("Orders", "p", "2", `"v":{"S":"2"}`)
	r.hastenUntil("it is read", func() bool { s := r.fold("Orders"); return s.LastFrame > s.Fence.Seq })
	r.control("Orders", &checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: "f1", Undo: true}})
	r.hastenUntil("the row is still fenced", func() bool {
		st := r.table("Orders")
		return st.State == "halted" && strings.Contains(st.Halt, "does not hold that fence")
	})
	if rows := r.stored("Orders"); len(rows) != 1 {
		t.Fatalf("applied although the row is fenced: %v", rows)
	}
	r.fenceRow("Orders", "")
	r.hastenUntil("it goes on", func() bool { return len(r.stored("Orders")) == 2 })
	r.settle()
	r.equal()
}

// What would write rows is not done behind a fence: requests wait for its end, and gaps do not heal
// by themselves.
func TestNothingIsRepairedBehindAFence(t *testing.T) {
	long(t, "a gap")
	w := newWorld(t)
	w.onGap = "heal"
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "p", "1", `"v":{"S":"1"}`)
	r.settle()
	r.fence("Orders", "f1")
	r.standing(1)
	asked := r.ask(request.Resync, itemOf("p", "1"))
	r.kill()
	w.loseChanges()
	r = w.restart("Orders")
	r.hastenUntil("the gap is found", func() bool { return len(r.fold("Orders").Gaps) > 0 })
	r.standing(2)
	seq := r.fold("Orders").Seq
	r.hastenUntil("the owner goes on", func() bool { return r.fold("Orders").Seq > seq+20 })
	s := r.fold("Orders")
	chunk, err := r.requests("Orders").Next(t.Context(), w.clock.Now())
	if err != nil || chunk == nil || chunk.ID != asked[0].ID {
		t.Errorf("the request is done behind the fence: %+v, %v", chunk, err)
	}
	if s.Resync != nil || s.OpenGaps() == 0 || len(s.AllHalts()) > 0 {
		t.Errorf("resync %+v, %d open gaps, halts %v", s.Resync, s.OpenGaps(), s.AllHalts())
	}
	r.undoFence("Orders", "f1")
	r.answered(asked)
	r.healed()
}

// A further table of the pipeline is configured to write to the fenced target: it has no fence of
// its own, and is not started.
func TestNewTableWritesNothingToAFencedTarget(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "p", "1", `"v":{"S":"1"}`)
	r.settle()
	r.fence("Orders", "f1")
	r.standing(1)
	before := r.stored("Orders")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.createTable("Carts")
	w.put("Carts", "c", "1", `"v":{"S":"1"}`)
	w.opts = func(o *pipeline.Options) { o.Tables[1].Target = o.Tables[0].Target }
	r = w.start("Orders", "Carts")
	r.hastenUntil("the new table is halted", func() bool { return r.table("Carts").State == "halted" })
	if why := r.table("Carts").Halts["pipeline"]; !strings.Contains(why, "cutover f1 has fenced it") {
		t.Errorf("halted because %s", why)
	}
	if diff := cmp.Diff(before, r.stored("Orders")); diff != "" {
		t.Errorf("rows of the fenced target (-before +after):\n%s", diff)
	}
	r.standing(2) // while it starts, a row without the log's fence refuses it
	r.undoFence("Orders", "f1")
	r.hastenUntil("the new table is started", func() bool { return len(r.stored("Orders")) == len(before)+1 })
}
