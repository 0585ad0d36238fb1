package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// prepareLoss makes a table whose items have changed several times within the last minutes, and
// stops the pipeline.
func (w *world) prepareLoss() (*pairs, *run) {
	w.t.Helper()
	w.createTable("Orders")
	p := &pairs{w: w}
	r := w.start("Orders")
	for range 3 {
		for i := range 20 {
			p.put(fmt.Sprint("p", i%7), fmt.Sprint(i))
		}
		w.clock.Advance(20 * time.Second)
	}
	r.settle()
	return p, r
}

// loseMore changes the table while nothing reads its stream.
func (p *pairs) loseMore() {
	p.w.t.Helper()
	for i := range 20 {
		if pk := fmt.Sprint("p", i%7); i%3 == 0 {
			p.w.delete("Orders", pk, fmt.Sprint(i))
		} else if i%3 == 1 {
			p.put(pk, fmt.Sprint(i))
		}
	}
}

// recovered waits until the new life's resync is complete.
func (r *run) recovered() {
	r.t.Helper()
	r.hastenUntil("the status says that it recovers", func() bool {
		st := r.table("Orders")
		ready, _ := r.p.Ready()
		return st.State == "recovering" && !ready
	})
	r.healed()
}

// Attack 36: the records of the last minutes are read again, and each of them is a state that
// readers have left behind.
func TestRecoveryDoesNotReplayOldStates(t *testing.T) {
	long(t, "starts a pipeline twice")
	for name, mapping := range map[string]string{
		"own rows": "", "shared rows": sharedRows, "histories": classes["histories"],
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mapping = mapping
			p, r := w.prepareLoss()
			x := r.seen()
			r.kill()
			w.loseVolume()
			p.loseMore()
			w.clock.Advance(30 * time.Second) // these are older than the new life, and within what it reads
			w.recover("Orders")
			r = w.restart("Orders")
			x.follow(r)
			stop := p.keepWriting()
			r.recoveredUnder(func() { x.look(r.stored("Orders")) })
			stop()
			r.settle()
			r.equal()
			// The records of what was lost are there, and left to the resync, like all that are
			// older than the life.
			if n := r.fold("Orders").LastResync.Result.Written; n < 10 {
				t.Errorf("the resync wrote %d items, so records from before the life were applied", n)
			}
		})
	}
}

// recoveredUnder is recovered for a table that is written to: look is called in between.
func (r *run) recoveredUnder(look func()) {
	r.t.Helper()
	r.hastenUntil("it recovers", func() bool { look(); return r.table("Orders").State == "recovering" })
	r.until("the resync is complete", func() bool {
		look()
		r.hasten()
		return r.table("Orders").State == "running"
	})
}

// TestLogsThatDoNotBelongToTheRowAreRecovered: each is refused by run, and left by a recovery.
func TestLogsThatDoNotBelongToTheRowAreRecovered(t *testing.T) {
	for name, spoil := range map[string]func(w *world, r *run){
		"emptied": func(w *world, r *run) {
			r.deleteStreams()
			r.kill()
		},
		// Attack 28: a copy of the volume from an earlier life comes back.
		"of an earlier life": func(w *world, r *run) {
			r.kill()
			old := w.copyVolume()
			w.loseVolume()
			w.recover("Orders")
			second := w.restart("Orders")
			second.recovered()
			second.kill()
			w.dir = old
		},
		"of another pipeline": func(w *world, r *run) {
			r.kill()
			w.loseVolume()
			q, err := queue.Open(w.t.Context(), queue.Options{Pipeline: "shop", Dir: w.dir},
				zap.NewNop(), prometheus.NewRegistry())
			if err != nil {
				w.t.Fatal(err)
			}
			if _, err := q.CreateLog(w.t.Context(), "Orders", "foreign"); err != nil {
				w.t.Fatal(err)
			}
			if err := q.Close(); err != nil {
				w.t.Fatal(err)
			}
		},
		"damaged at its start": func(w *world, r *run) {
			r.kill()
			w.cutLog(regexp.MustCompile("TRLG.s"))
		},
		"of a stream that was enabled again since": func(w *world, r *run) {
			r.kill()
			w.loseVolume()
			w.post("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
			w.clock.Advance(5 * time.Second)
			w.post("UpdateTable",
				`{"TableName":"Orders","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			long(t, "starts a pipeline three times")
			w := newWorld(t)
			w.patient()
			p, r := w.prepareLoss()
			spoil(w, r)
			p.loseMore()
			r = w.restart("Orders")
			refused := (*pipeline.RefusedError)(nil)
			if err := r.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "recover") {
				t.Fatalf("run went on with that log: %v", err)
			}
			r.close()
			w.recover("Orders")
			r = w.restart("Orders")
			r.recovered()
			row, err := r.sink.LoadState(t.Context(), "shop", "Orders")
			if err != nil || row.Recovering || !row.Issued || row.Lead > time.Hour {
				t.Errorf("%+v, %v", row, err)
			}
			p.put("p1", "after")
			r.settle()
			r.equal()
		})
	}
}

// copyVolume copies the volume of the log, and returns the copy.
func (w *world) copyVolume() string {
	w.t.Helper()
	to := w.t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "copy"), os.DirFS(w.dir)); err != nil {
		w.t.Fatal(err)
	}
	return filepath.Join(to, "copy")
}

// forgetNote removes what is noted of the log of Orders, as where an older build has run.
func (w *world) forgetNote() {
	w.t.Helper()
	r := w.openAs(false, "Orders")
	defer func() {
		r.ended <- nil
		r.close()
	}()
	row := r.removeRow()
	if err := r.sink.CreateState(w.t.Context(), row); err != nil {
		w.t.Fatal(err)
	}
}

// TestOlderCopyOfTheVolumeOfTheSameLife: one that is not recognized, because nothing is noted of
// the log. What it lacks is read again, gets the versions that it had, and changes nothing.
func TestOlderCopyOfTheVolumeOfTheSameLife(t *testing.T) {
	long(t, "starts a pipeline twice")
	w := newWorld(t)
	p, r := w.prepareLoss()
	r.kill()
	old := w.copyVolume()
	r = w.restart("Orders")
	for range 3 {
		p.loseMore()
		w.streams.Rotate("Orders")
	}
	r.settle()
	x := r.seen()
	r.kill()
	w.dir = old
	w.forgetNote()
	r = w.restart("Orders")
	x.follow(r)
	p.loseMore()
	at := w.clock.Now()
	r.until("everything is applied", func() bool {
		x.look(r.stored("Orders"))
		through, ok := r.p.AppliedThrough()
		return ok && through.After(at)
	})
	r.equal()
}

// Attack 68: a recovery that is killed after any of its steps goes on at the next start, and never
// with the old log.
func TestKilledAfterEachStepOfARecovery(t *testing.T) {
	long(t, "starts a pipeline six times")
	w := newWorld(t)
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = time.Millisecond }
	p, r := w.prepareLoss()
	x, old := r.seen(), r.log("Orders").Created()
	r.kill()
	w.cutLog(regexp.MustCompile("TRLG.s")) // its start
	p.loseMore()
	w.clock.Advance(30 * time.Second)
	rec := w.recover("Orders")
	rowWrites := func() { w.front.Faults.RefuseRow([]byte("shop#Orders"), codes.Unavailable, -1) }
	failing := func(operation string) {
		rule := fault.Rule{Effect: fault.Error, Operation: operation, Code: "InternalServerError"}
		if err := w.faults.Inject(rule); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		hold func() // before the start: what keeps the step after this one from being made
		done func(r *run) bool
		next func() // then: what keeps the step after the next one from being made
		then func(r *run) bool
	}{
		{name: "the old log is deleted, a new one made", hold: rowWrites, done: func(r *run) bool {
			l, err := r.queue.Log(t.Context(), "Orders")
			return err == nil && !l.Created().Equal(old)
		}},
		{name: "the log is claimed", hold: func() { failing("DescribeStream") }, done: func(r *run) bool {
			return r.fold("Orders").Epoch > 0 && !r.row("Orders").Identity.LogCreated.Equal(old)
		}},
		{name: "the log has a start", hold: func() { failing("DescribeStream") }, done: func(r *run) bool {
			return r.fold("Orders").Epoch > 1
		}, next: func() { rowWrites(); w.faults.Calm() }, then: func(r *run) bool {
			return r.fold("Orders").LiveStream() != nil
		}},
		{name: "the row says that it is read", hold: func() { failing("GetRecords") }, done: func(r *run) bool {
			return !r.row("Orders").Recovering
		}},
	} {
		step.hold()
		r = w.restart("Orders")
		r.until(step.name, func() bool { return step.done(r) })
		if step.next != nil {
			step.next()
			r.until(step.name, func() bool { return step.then(r) })
		}
		row, s := r.row("Orders"), r.fold("Orders")
		if s.LastFrame != 0 || row.Life != rec.Life || row.Issued == row.Recovering {
			t.Errorf("%s: frame %d, %+v", step.name, s.LastFrame, row)
		}
		x.look(r.stored("Orders"))
		r.kill()
		w.front.Faults.Calm()
		w.faults.Calm()
		p.loseMore()
	}
	w.opts = nil
	w.clock.Advance(30 * time.Second)
	r = w.restart("Orders")
	x.follow(r)
	stop := x.poll()
	r.recovered()
	stop()
	if s := r.fold("Orders"); s.Life != rec.Life || s.Streams[0].Floor < rec.Floor || s.HighestVersion() <= rec.Floor {
		t.Errorf("life %d with versions up to %d above %d, want %d and %d", s.Life, s.HighestVersion(), s.Streams[0].Floor,
			rec.Life, rec.Floor)
	}
	if row := r.row("Orders"); row.Recovering || !row.Issued || row.Life != rec.Life {
		t.Errorf("%+v", row)
	}
}

// TestRecoveryWithAnArchive: it takes all records that are left of the life before; Bigtable takes
// none of them.
func TestRecoveryWithAnArchive(t *testing.T) {
	long(t, "starts a pipeline twice")
	w := newWorld(t)
	archive := &flakyArchive{events: map[string]int{}}
	w.archive, w.onTTL = &archiving.Place{Subject: archive}, "archive"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	p := &pairs{w: w}
	r := w.start("Orders")
	for i := range 20 {
		p.put("p", fmt.Sprint(i))
		w.put("Orders", "mortal", fmt.Sprint(i), fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	}
	r.settle()
	x := r.seen()
	r.kill()
	w.loseVolume()
	w.clock.Advance(30 * time.Minute) // older than what a recovery without an archive reads
	w.tables.ExpireNow(w.clock.Now())
	p.put("p", "1")
	w.clock.Advance(30 * time.Minute)
	w.recover("Orders")
	r = w.restart("Orders")
	x.follow(r)
	r.recoveredUnder(func() { x.look(r.stored("Orders")) })
	r.settle()
	r.equal()
	if _, n := archive.counts(); n != 20 {
		t.Errorf("%d items were archived, want the 20 that expired while there was no log", n)
	}
}
