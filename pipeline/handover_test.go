package pipeline_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
)

// sharedQueue lets the processes of a world share a NATS server.
func (w *world) sharedQueue() {
	w.t.Helper()
	w.patient()
	url := externalNATS(w.t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL, o.MaxBytes, o.LettersMaxBytes = "", url, 64<<20, 16<<20 }
}

// owns reports whether the process carries a table.
func (r *replica) owns(table string) bool {
	st := r.table(table)
	return st.State != status.StandBy && st.Owner == r.name
}

// pair starts two processes of one table. from owns it, and to waits for its log.
func (w *world) pair(table string) (from, to *replica) {
	w.t.Helper()
	from, to = w.replica("a", table), w.replica("b", table)
	from.until("one of two processes carries the table", func() bool {
		if to.owns(table) {
			from, to = to, from
		}
		return from.owns(table) && to.table(table).State == status.StandBy
	})
	return from, to
}

// untilHandedOver waits until the log of a table went from a process to another one that it named.
func (r *replica) untilHandedOver(table string, to *replica) {
	r.t.Helper()
	to.until("the other process carries the table", func() bool { return to.owns(table) })
	// A store whose outcome stays unknown, as on a very busy machine, ends a hand-over: the next owner
	// waits then.
	unknown := r.logged.FilterMessageSnippet("the log is not released").Len() > 0
	if r.logged.FilterMessage("handed the log over").FilterField(zap.String("to", to.name)).Len() == 0 && !unknown {
		r.t.Errorf("the log was not handed over to %s", to.name)
	}
	for _, e := range r.logged.FilterMessage("start again from the stored state").All() {
		if e.ContextMap()["error"] == nil { // others are about NATS, which makes the log meanwhile
			r.t.Error("a hand-over counts as a failure of the table")
		}
	}
}

// TestHandOverInTheMiddleOfACopy: the next owner goes on from the last page that is in Bigtable,
// and not from the last marks that were due, whether it was asked for or the process ends.
func TestHandOverInTheMiddleOfACopy(t *testing.T) {
	for _, ends := range []bool{false, true} {
		t.Run(map[bool]string{false: "asked for", true: "the process ends"}[ends], func(t *testing.T) {
			long(t, "15 s: processes listen before the first claim")
			const n = 600
			w := newWorld(t)
			w.sharedQueue()
			release := w.holdScans(16) // half of the parts
			defer release()
			w.oldTable(n)
			from, to := w.pair("Orders")
			from.hastenUntil("a page is copied", func() bool {
				c := from.table("Orders").Copy
				return c != nil && c.Items > 0
			})
			w.changeItems("Orders", 3, 100)
			copied := from.table("Orders").Copy.Items
			if ends {
				if err := from.stop(); err != nil {
					t.Fatal(err)
				}
			} else {
				from.p.HandOver("Orders", to.name)
			}
			from.untilHandedOver("Orders", to)
			if all := from.p.Unsaved(); len(all) > 0 {
				t.Errorf("not saved: %q", all)
			}
			if c := to.fold("Orders").CopyRunning(); c == nil || c.Total().Items < copied {
				t.Errorf("the log has %+v of a copy; Bigtable has %d of its items", c, copied)
			}
			release()
			to.copied()
			to.settle()
			to.equal()
			if again := to.metric("tailrace_copy_items_total"); again > float64(n-copied) {
				t.Errorf("%v items are copied after the first %d of %d", again, copied, n)
			}
		})
	}
}

// TestHandOverInTheMiddleOfAResync: the next owner has the order, and does it.
func TestHandOverInTheMiddleOfAResync(t *testing.T) {
	long(t, "15 s: processes listen before the first claim")
	w := newWorld(t)
	w.sharedQueue()
	release := w.holdScans(1)
	defer release()
	w.createTable("Orders")
	w.changeItems("Orders", 4, 200)
	from, to := w.pair("Orders")
	from.settle()
	from.control("Orders", &checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: "r1"}, By: "test"})
	from.hastenUntil("the resync compares", func() bool {
		s := from.table("Orders").Resync
		return s != nil && s.Doing == "comparing"
	})
	w.changeItems("Orders", 5, 50)
	from.p.HandOver("Orders", to.name)
	from.untilHandedOver("Orders", to)
	release()
	to.healed()
	if s := from.table("Orders"); s.State != status.StandBy || s.Resync != nil {
		t.Errorf("the process that had the log shows %s, %+v", s.State, s.Resync)
	}
}

// TestHandOverWhilePaused: the next owner of a table that is paused holds its log, and goes on when
// it is resumed.
func TestHandOverWhilePaused(t *testing.T) {
	long(t, "15 s: processes listen before the first claim")
	w := newWorld(t)
	w.sharedQueue()
	w.createTable("Orders")
	w.changeItems("Orders", 6, 50)
	from, to := w.pair("Orders")
	from.settle()
	from.control("Orders", &checkpoint.Control{Pause: new(true), By: "test"})
	from.until("it is paused", func() bool { return from.table("Orders").State == "paused" })
	w.changeItems("Orders", 7, 50)
	from.p.HandOver("Orders", to.name)
	to.until("the other process holds the log", func() bool {
		return to.owns("Orders") && to.table("Orders").State == "paused"
	})
	epoch := to.table("Orders").Epoch
	to.control("Orders", &checkpoint.Control{Pause: new(false), By: "test"})
	to.settle()
	if now := to.fold("Orders"); now.Owner != to.name || now.Epoch != epoch {
		t.Errorf("%s has the log with epoch %d, want %s with %d", now.Owner, now.Epoch, to.name, epoch)
	}
	to.equal()
}

// TestHandOverBeforeTheWorkOfALife: the owner walks over its dead letters when it is asked for the
// log. It does not work first.
func TestHandOverBeforeTheWorkOfALife(t *testing.T) {
	long(t, "15 s: processes listen before the first claim")
	w := newWorld(t)
	w.sharedQueue()
	w.createTable("Orders")
	w.changeItems("Orders", 8, 50)
	walk := newPausedWalk()
	w.opts = func(o *pipeline.Options) { o.Owner = "a" }
	from := &replica{w.open("Orders"), "a"}
	from.p.BeforeLetters(walk.wait)
	from.begin()
	from.until("the walk waits", walk.isHeld)
	to := w.replica("b", "Orders")
	to.until("it stands by", func() bool { return to.table("Orders").State == status.StandBy })
	from.until("the other process carries the table", func() bool {
		from.p.HandOver("Orders", to.name) // again, where it did not listen for long enough yet
		return to.owns("Orders")
	})
	from.untilHandedOver("Orders", to)
	walk.release()
	to.settle()
	to.equal()
}

// TestDeletedRowOfAPausedTableIsSaidInItsLog: what the look at the row finds ends the pause. The
// log is in hand until the reason is stored in it.
func TestDeletedRowOfAPausedTableIsSaidInItsLog(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	r.control("Orders", &checkpoint.Control{Pause: new(true), By: "test"})
	r.until("it is paused", func() bool { return r.table("Orders").State == "paused" })
	r.removeRow()
	r.until("the table is halted", func() bool { return r.table("Orders").Code == outcome.CodeRowMissing })
	if h := r.folded("Orders").AllHalts()[outcome.Pipeline]; h == nil || h.Code != outcome.CodeRowMissing {
		t.Errorf("the log holds the halt %+v", h)
	}
}

// TestPausedTableShowsNoPartOfItsWork: what a part had counted is out of date once it has ended.
func TestPausedTableShowsNoPartOfItsWork(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	if runs, shown := r.p.Works("Orders"); !runs || !shown {
		t.Errorf("at work: runs %t, shown %t", runs, shown)
	}
	w.front.Faults.Outage(0)
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.until("a change waits", func() bool { st := r.table("Orders"); return st.Pending != nil && *st.Pending == 1 })
	r.control("Orders", &checkpoint.Control{Pause: new(true), By: "test"})
	r.until("it is paused", func() bool { return r.table("Orders").State == "paused" })
	if runs, shown := r.p.Works("Orders"); runs || shown {
		t.Errorf("paused: runs %t, shown %t", runs, shown)
	}
	if n := r.table("Orders").Pending; n != nil {
		t.Errorf("%d changes wait, as no sink counts any more", *n)
	}
}

// TestEndAppliesWhatTheLogHolds: sinks go on behind the readers until the log is applied. Its last
// mark is stored, and nothing is applied again. So it is where Bigtable was away since the start,
// and the row is not known before the end has begun.
func TestEndAppliesWhatTheLogHolds(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(map[bool]string{false: "at work", true: "before the row is known"}[restarts], func(t *testing.T) {
			w := newWorld(t)
			w.createTable("Orders")
			w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Minute }
			r := w.start("Orders")
			w.put("Orders", "a", "1", `"v":{"N":"1"}`)
			r.settle()
			if restarts {
				if err := r.stop(); err != nil {
					t.Fatal(err)
				}
			}
			w.front.Faults.Outage(0)
			if restarts {
				r = w.restart("Orders")
			}
			const n = 50
			for i := range n {
				w.put("Orders", "p", fmt.Sprint(i), `"v":{"N":"1"}`)
			}
			r.until("all changes are in the log", func() bool { return r.table("Orders").Changes == n+1 })
			r.readsNoMore()
			w.front.Faults.Recover()
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			r.equal()
			s := r.fold("Orders")
			if mark := s.Marks[checkpoint.SinkBigtable]; mark.Seq < s.LastFrame || !s.Released {
				t.Errorf("mark %d, last changes %d, released %t", mark.Seq, s.LastFrame, s.Released)
			}
		})
	}
}

// readsNoMore ends a pipeline, and waits until it only applies what its logs hold.
func (r *run) readsNoMore() {
	r.t.Helper()
	before := r.logged.FilterMessageSnippet("no more reading").Len()
	r.cancel()
	r.wait("it reads no more", func() bool { return r.logged.FilterMessageSnippet("no more reading").Len() > before })
}

// TestEndLeavesWhatSinksNeed: while Bigtable is waited for, the archive works on, and a dead letter
// that is dropped is not counted any more.
func TestEndLeavesWhatSinksNeed(t *testing.T) {
	w := newWorld(t)
	s := &flakyArchive{events: map[string]int{}}
	w.archive, w.onTTL = &archiving.Place{Subject: s}, "archive"
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Minute }
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	s.fail(errors.New("the archive is broken"))
	w.front.Faults.RefuseRow([]byte("bad"), codes.InvalidArgument, 2)
	w.put("Orders", "bad", "x", `"v":{"N":"1"}`)
	w.put("Orders", "p", "0", fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	r.until("one is a letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.until("the archive is tried", func() bool { tries, _ := s.counts(); return tries > 0 })
	r.until("the deletion is applied", func() bool {
		st := r.table("Orders")
		return st.Pending != nil && *st.Pending == 0
	})
	w.front.Faults.Outage(0)
	w.put("Orders", "p", "1", "")
	r.until("a change waits", func() bool { st := r.table("Orders"); return st.Pending != nil && *st.Pending == 1 })
	r.readsNoMore()
	if err := r.letters("Orders").Drop(t.Context(), r.letter("Orders", 0).ID); err != nil {
		t.Fatal(err)
	}
	r.until("the letter is forgotten", func() bool { return r.table("Orders").DeadLetters == 0 })
	s.fail(nil)
	r.until("the event is archived", func() bool { _, n := s.counts(); return n == 1 })
	w.front.Faults.Recover()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.fold("Orders"); got.Marks[checkpoint.SinkBigtable].Seq < got.LastFrame {
		t.Errorf("mark %d, last changes %d", got.Marks[checkpoint.SinkBigtable].Seq, got.LastFrame)
	}
}

// TestResyncEndsBeforeTheDrain: it writes nothing behind the readers, and status shows none.
func TestResyncEndsBeforeTheDrain(t *testing.T) {
	w := newWorld(t)
	release := w.holdScans(1)
	defer release()
	w.createTable("Orders")
	w.changeItems("Orders", 4, 200)
	r := w.start("Orders")
	r.settle()
	r.order("r1")
	r.hastenUntil("the resync compares", func() bool {
		s := r.table("Orders").Resync
		return s != nil && s.Doing == "comparing"
	})
	w.front.Faults.Outage(0)
	w.put("Orders", "p", "1", "")
	r.until("a change waits", func() bool { st := r.table("Orders"); return st.Pending != nil && *st.Pending == 1 })
	r.readsNoMore()
	r.until("no resync is shown", func() bool { return r.table("Orders").Resync == nil })
	if runs, _ := r.p.Works("Orders"); !runs {
		t.Error("the resync is shown until the drain ends")
	}
	w.front.Faults.Recover()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if s := r.fold("Orders"); s.Resync == nil || s.Marks[checkpoint.SinkBigtable].Seq < s.LastFrame {
		t.Errorf("resync %+v, mark %d, last changes %d", s.Resync, s.Marks[checkpoint.SinkBigtable].Seq, s.LastFrame)
	}
}

// TestCopyIsSavedBeforeTheDrain: the log has its last marks, which were not due yet, and status shows
// no progress of a copy that has ended.
func TestCopyIsSavedBeforeTheDrain(t *testing.T) {
	w := newWorld(t)
	release := w.holdScans(16) // half of the parts
	defer release()
	w.oldTable(300)
	r := w.start("Orders")
	r.hastenUntil("a page is copied", func() bool {
		c := r.table("Orders").Copy
		return c != nil && c.Items > 0
	})
	copied := r.table("Orders").Copy.Items
	w.front.Faults.Outage(0)
	w.put("Orders", "p", "1", `"v":{"N":"1"}`)
	r.until("a change waits", func() bool { st := r.table("Orders"); return st.Pending != nil && *st.Pending == 1 })
	r.readsNoMore()
	r.until("the budget of no copy is shown", func() bool {
		c := r.table("Orders").Copy
		return c != nil && c.ReadBudget < 0
	})
	if runs, _ := r.p.Works("Orders"); !runs {
		t.Error("the copy is shown until the drain ends")
	}
	if c := r.fold("Orders").CopyRunning(); c == nil || c.Total().Items < copied {
		t.Errorf("the log has %+v of a copy; Bigtable has %d of its items", c, copied)
	}
	w.front.Faults.Recover()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}
