package pipeline_test

import (
	"cmp"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// planRecovery looks at a table as `recover` does; r need not run.
func (r *run) planRecovery(table string) (*staterow.Recovery, error) {
	r.t.Helper()
	ctx := r.t.Context()
	info, err := r.src.Table(ctx, table)
	if err != nil {
		r.t.Fatal(err)
	}
	f := staterow.Found{Date: info.Date, Lead: cmp.Or(r.lead, 10*time.Minute)}
	if f.Row, err = r.sink.LoadState(ctx, "shop", table); err != nil && !errors.Is(err, bigtable.ErrNoState) {
		r.t.Fatal(err)
	}
	l, err := r.queue.Log(ctx, table)
	if err == nil {
		f.Created = l.Created()
		f.Log, f.FoldErr = l.Fold(ctx)
	} else if !errors.Is(err, queue.ErrNoLog) {
		r.t.Fatal(err)
	}
	if f.Row != nil {
		f.Want = f.Row.Identity
	} else {
		prog, err := r.compile(table)(info)
		if err != nil {
			r.t.Fatal(err)
		}
		f.Want = bigtable.Identity{
			Pipeline: "shop", Table: table, TableID: info.ID, StreamARN: info.StreamARN,
			MappingHash: staterow.MappingID(prog), Target: r.sink.TargetName(target(table)),
		}
	}
	if note, err := r.sink.LoadLogNote(ctx, "shop", table); err != nil {
		r.t.Fatal(err)
	} else if f.Noted = staterow.NoteOf(note); f.Noted != nil && l != nil {
		if f.Seen, err = l.SeenAt(ctx, f.Noted.Seq); err != nil {
			r.t.Fatal(err)
		}
	}
	f.Want.LogCreated = f.Created.UTC()
	return staterow.PlanRecovery(f)
}

// recover begins a new life of a table, whose pipeline does not run.
func (w *world) recover(table string) *staterow.Recovery {
	w.t.Helper()
	r := w.openAs(false, table)
	defer func() {
		r.ended <- nil
		r.close()
	}()
	rec, err := r.planRecovery(table)
	if err != nil || rec == nil {
		w.t.Fatalf("plan: %+v, %v", rec, err)
	}
	if err := rec.Begin(w.t.Context(), r.sink); err != nil {
		w.t.Fatal(err)
	}
	return rec
}

func (w *world) loseVolume() {
	w.t.Helper()
	if err := os.RemoveAll(w.dir); err != nil {
		w.t.Fatal(err)
	}
	w.dir = w.t.TempDir()
}

// fold returns what a table's log adds up to.
func (r *run) fold(table string) *checkpoint.State {
	r.t.Helper()
	for {
		s, err := r.log(table).Fold(r.t.Context())
		switch {
		case err == nil:
			return s
		case queue.Classify(err) != failure.Transient ||
			failure.Pause(r.t.Context(), 50*time.Millisecond) != nil:
			r.t.Fatal(err)
		}
	}
}

// Attack 46: the room for versions that run ahead of the time stays a matter of minutes, however
// often the log is lost, and the versions of each life are above all that were given out before
// (Rule 5), also above those of a burst. A reader sees no row step back, although each log but the
// last is lost before the table was compared.
func TestFourRecoveriesKeepTheLeadAtMinutes(t *testing.T) {
	long(t, "starts a pipeline five times")
	w := newWorld(t)
	w.lead = 200 * time.Millisecond
	p, r := w.prepareLoss()
	x, highest := r.seen(), r.fold("Orders").HighestVersion()
	for life := uint64(2); life <= 5; life++ {
		r.kill()
		w.loseVolume()
		p.loseMore()
		if life < 5 {
			w.clock.Advance(10 * time.Second) // what was lost is older than the new life
		}
		rec := w.recover("Orders")
		if rec.Life != life || rec.Floor <= highest || rec.Lead > 10*time.Minute {
			t.Fatalf("life %d: %+v, versions so far up to %d", life, rec, highest)
		}
		r = w.restart("Orders")
		if life < 5 {
			x.follow(r)
		}
		stop := x.poll()
		r.until("the new life has begun", func() bool { return !r.row("Orders").Recovering })
		w.clock.Advance(2 * time.Second) // records have whole seconds, and those from before the begin are not applied
		p.put("p0", "0")
		r.settle()
		stop()
		s, row := r.fold("Orders"), r.row("Orders")
		if row.Recovering || !row.Issued || row.Life != life || row.Lead > 10*time.Minute {
			t.Fatalf("%+v", row)
		}
		if s.Resync == nil || !s.Resync.Recover || s.Life != life || s.HighestVersion() <= row.Floor {
			t.Errorf("life %d with versions up to %d above %d begins with %+v", s.Life, s.HighestVersion(), row.Floor, s.Resync)
		}
		if life == 4 {
			x.follow(nil) // the records of the burst pass for younger ones than they are, so the next life applies them
			w.streams.Faults().RecordSkew(3 * time.Minute)
			p.put("p0", "0")
			r.settle()
			w.streams.Faults().RecordSkew(0)
		}
		highest = max(highest, r.fold("Orders").HighestVersion())
	}
	r.healed()
}

// row returns the pipeline's row of a table.
func (r *run) row(table string) *bigtable.State {
	r.t.Helper()
	row, err := r.sink.LoadState(r.t.Context(), "shop", table)
	// Connections end where the process stood still.
	for n := 0; n < 50 && bigtable.Classify(err) == failure.Transient; n++ {
		_ = failure.Pause(r.t.Context(), 100*time.Millisecond)
		row, err = r.sink.LoadState(r.t.Context(), "shop", table)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return row
}

// TestRecoveryThatHasBegunIsNotBegunAgain: unless the log is one with which its owner cannot go on.
func TestRecoveryThatHasBegunIsNotBegunAgain(t *testing.T) {
	old, made := time.Unix(1000, 0).UTC(), time.Unix(2000, 0).UTC()
	row := &bigtable.State{Life: 2, Floor: 50, Lead: time.Hour, Recovering: true, OldLog: old}
	row.Identity = bigtable.Identity{Pipeline: "shop", Table: "Orders", LogCreated: old}
	for name, c := range map[string]struct {
		created time.Time
		log     *checkpoint.State
		foldErr error
		begun   bool
	}{
		"no log":                     {begun: true},
		"the log that was left":      {old, &checkpoint.State{Chain: checkpoint.Chain{Epoch: 3}, Life: 1}, nil, true},
		"it cannot be read":          {old, nil, queue.ErrDamaged, true},
		"an older log was restored":  {made, &checkpoint.State{Chain: checkpoint.Chain{Epoch: 3}, Life: 1}, nil, true},
		"the new log, still empty":   {made, &checkpoint.State{}, nil, true},
		"the new log":                {made, &checkpoint.State{Chain: checkpoint.Chain{Epoch: 1}, Life: 2}, nil, true},
		"the new log cannot be read": {made, nil, queue.ErrDamaged, false},
		"another pipeline's log": {made, &checkpoint.State{Chain: checkpoint.Chain{Epoch: 1}, Life: 2,
			Identity: &checkpoint.Identity{Pipeline: "other"}}, nil, false},
	} {
		f := staterow.Found{Row: row, Log: c.log, FoldErr: c.foldErr, Created: c.created, Want: row.Identity, Date: 100}
		f.Want.LogCreated = c.created
		rec, err := staterow.PlanRecovery(f)
		if err != nil || rec == nil || rec.Begun != c.begun || c.begun != (rec.Life == 2) {
			t.Errorf("%s: %+v, %v", name, rec, err)
		}
		if c.begun && rec != nil && rec.Begin(t.Context(), nil) != nil { // a nil client: nothing may be written
			t.Errorf("%s: it is begun again", name)
		}
	}
}

// Attack 68: until the recovery is complete nothing goes on with the old log, wherever the process
// is killed.
func TestOldLogIsNeverReadOnWhileRecovering(t *testing.T) {
	long(t, "starts a pipeline three times")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	if rec, err := r.planRecovery("Orders"); rec != nil || err != nil {
		t.Fatalf("a log that is well is to be left: %+v, %v", rec, err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	before := w.openAs(false, "Orders")
	row := before.row("Orders")
	// The operator began a recovery while the old volume was away, and then it came back.
	next := *row
	next.Life, next.Floor, next.Recovering, next.Issued, next.OldLog = 2, change.Version(w.clock.Now().Add(time.Hour).
		UnixMilli()), true, false, row.Identity.LogCreated
	next.Lead = 2 * time.Hour
	if err := before.sink.CompareAndSet(t.Context(), row, &next); err != nil {
		t.Fatal(err)
	}
	before.ended <- nil
	before.close()
	r = w.restart("Orders")
	w.put("Orders", "b", "1", `"v":{"N":"1"}`)
	r.recovered()
	w.put("Orders", "b", "1", `"v":{"N":"2"}`)
	r.settle()
	r.equal()
	s := r.fold("Orders")
	if s.Life != 2 || s.Streams[0].Floor < next.Floor || s.HighestVersion() <= next.Floor {
		t.Errorf("life %d, floor %d, highest %d", s.Life, s.Streams[0].Floor, s.HighestVersion())
	}
	if row = r.row("Orders"); row.Recovering || row.Identity.LogCreated.Equal(next.OldLog) {
		t.Errorf("%+v", row)
	}
}
