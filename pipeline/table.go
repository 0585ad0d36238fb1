package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// table runs one table: one life after the other until the context ends.
type table struct {
	Table
	p   *Pipeline
	log *zap.Logger

	Program *transform.Program // compiled at the first life, for the table's key
	Info    source.TableInfo
	stats   *apply.Stats
	letters *apply.DeadLetters // of the current life, or of the last one
	stream  atomic.Pointer[queue.Log]

	rowMu     sync.Mutex // covers row
	row       *bigtable.State
	owned     bool          // the target is the pipeline's
	kept      bool          // the mapping's text is beside its hash
	stale     bool          // the row is not known, or somebody else changed it: it is read again
	confirmed chan struct{} // closed when the row agrees with the log; a new one for each claim
	lead      atomic.Int64  // of the row, readable while somebody holds the mutex and waits for Bigtable

	left     uint64         // where the log stood when the last life halted; 0 unknown
	pressure queue.Pressure // as of the last look; the writer's loop owns it

	owning  atomic.Bool // the loops of a life run
	claimed atomic.Bool // the log is ours
	saved   atomic.Bool // and was let go with the marks in it
	unsaved atomic.Bool // the table ended as owner of a log that was not let go
	started atomic.Bool // the state is loaded, owning or standing by
	halted  atomic.Pointer[checkpoint.Halt]
	view    atomic.Pointer[observed] // what the owner saw last; nil before the first claim, and while another process owns the log
	rival   atomic.Pointer[rival]    // who else owns the log, while we wait for it
	born    time.Time                // of the process
}

func newTable(p *Pipeline, t Table, m *apply.Metrics) *table {
	log := p.log.With(zap.String("table", t.Source), zap.String("target", t.Target))
	now := time.Now()
	return &table{Table: t, p: p, log: log, stats: m.Table(t.Source, log), born: now}
}

// run returns nil when ctx ends, and the refusals of all tables when none can run. All other trouble is kept to this
// table.
func (t *table) run(ctx context.Context) error {
	defer func() {
		t.unsaved.Store(t.claimed.Load() && !t.saved.Load())
		t.claimed.Store(false)
	}()
	for {
		err := t.life(ctx)
		out := outcome.OfTable(ctx, err)
		if out.Action == outcome.Drained {
			return nil
		}
		if none := t.p.refusals.after(t, out, err); none != nil {
			return none
		}
		if !t.rest(ctx, t.after(out, err)) {
			return nil
		}
	}
}

// rest waits before the next life, or until a nudge comes from somebody who wrote into the log: resume does.
func (t *table) rest(ctx context.Context, pause time.Duration) bool {
	var nudges <-chan struct{}
	if l := t.logOf(); l != nil {
		listening, cancel := context.WithCancel(ctx)
		defer cancel()
		nudges, _ = l.BeatRequests(listening) // without it the pause just takes its time
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-nudges:
			if info, err := t.logOf().Info(ctx); err == nil && info.Last != t.left {
				return true
			}
		}
	}
}

// again is how soon a life is tried again that ended in doubt or lost its log.
const again = 250 * time.Millisecond

// after prepares the next life as the outcome of the last one asks for, and returns how long to wait before it.
func (t *table) after(out outcome.Outcome, err error) time.Duration {
	t.claimed.Store(false)
	switch out.Action {
	case outcome.StandBy:
		t.log.Warn("stand by: another owner holds the log", zap.Error(err))
		t.stats.Rows.Forget()
		return again
	case outcome.Again:
		// Rule 4: what was in memory is gone with the life; the next one starts from what is stored.
		t.log.Warn("start again from the stored state", zap.Error(err))
		return again
	}
	t.halted.Store(t.haltOf(out))
	t.log.Error("halt the table", zap.String("code", out.Code), zap.String("reason", out.Reason), zap.Duration("retry_in", t.p.o.Periods.Retry))
	return t.p.o.Periods.Retry
}

// haltOf returns the halt of the pipeline itself that an outcome asks for.
func (t *table) haltOf(out outcome.Outcome) *checkpoint.Halt {
	return &checkpoint.Halt{Sink: outcome.Pipeline, Seq: out.Entry, Code: out.Code, Reason: out.Reason, At: t.now()}
}

// life claims the log and works until ctx ends (nil, drained), or until something is lost or halted. What is in
// doubt is taken up again from what is stored, as long as the log is still ours.
func (t *table) life(ctx context.Context) error {
	w, err := t.claim(ctx)
	if err != nil {
		return err
	}
	t.p.refusals.allow(t)
	t.left = 0
	for doubts := 0; ; doubts++ {
		began := time.Now()
		if err = t.own(ctx, w); err == nil || outcome.OfTable(ctx, err).Action != outcome.Again {
			break
		}
		if time.Since(began) > t.p.o.Periods.ClaimTTL {
			doubts = 0
		}
		if doubts == maxDoubts {
			err = &outcome.HaltError{Code: outcome.CodeUnknown, Reason: err.Error()}
			break
		}
		t.log.Warn("in doubt: go on from what is stored", zap.Error(err))
		// Rule 4: what was in memory ended with the work; only what is stored counts.
		if err := w.Recover(ctx); err != nil {
			return err
		}
		if !sleep(ctx, again) {
			break
		}
	}
	if out := outcome.OfTable(ctx, err); out.Action == outcome.Halt {
		t.leave(w, out)
	}
	return err
}

// maxDoubts is how often in a row, each time at once, work may end in doubt before somebody is told.
const maxDoubts = 10

// own does with the claimed log what its state asks for.
func (t *table) own(ctx context.Context, w *queue.Writer) error {
	t.claimed.Store(true)
	t.saved.Store(false)
	if t.stale && !readOn(w.State()) {
		if err := t.beating(ctx, w, t.readRow); err != nil {
			return err
		}
	} else if t.stale && t.rowKnown() { // another owner changed it
		t.doubtRow()
	}
	if err := t.upgrade(ctx, w); err != nil {
		return err
	}
	s := w.State()
	if s.Paused {
		return t.paused(ctx, w)
	}
	if s.LiveStream() == nil {
		if err := t.start(ctx, w); err != nil {
			return err
		}
	}
	if err := t.beating(ctx, w, t.issue); err != nil {
		return err
	}
	o := t.applyOptions()
	var letters *apply.DeadLetters
	err := t.beating(ctx, w, func(ctx context.Context) (err error) {
		letters, err = apply.OpenDeadLetters(ctx, t.p.shared, o)
		return err
	})
	if err != nil {
		return err
	}
	t.letters = letters
	t.owning.Store(true)
	defer t.owning.Store(false)
	return t.work(ctx, w, o)
}

// applyOptions returns what the sinks need to know about the table in this life, but for the way into the log.
func (t *table) applyOptions() apply.Options {
	return apply.Options{
		Table: apply.Table{
			Source: t.Source, Target: t.Target, Halts: t.OnReject == "halt", Archive: t.Archive, Program: t.Program,
		},
		Log: t.logOf(), Retry: t.p.o.Periods.Retry, Agreed: t.confirmed, Stats: t.stats, Logger: t.log,
		Retention: t.retentionLeft,
	}
}

// upgrade raises log and row to the newest format if that was asked for, before anything else is appended.
func (t *table) upgrade(ctx context.Context, w *queue.Writer) error {
	if t.p.o.Upgrade {
		if err := t.beating(ctx, w, t.upgradeRow); err != nil {
			return err
		}
	}
	if have := w.State().Format; have == checkpoint.Format {
		return nil
	} else if !t.p.o.Upgrade {
		t.log.Info("the log has an older format; it goes on in that, `replicator run --upgrade` raises it",
			zap.Int("format", have), zap.Int("newest", checkpoint.Format))
		return nil
	}
	err := w.Upgrade(ctx)
	if errors.Is(err, queue.ErrFull) {
		t.log.Warn("the log is full: it goes on in its older format, the next start upgrades it", zap.Error(err))
		return nil
	}
	return err
}

// leave writes down why the life ends and lets the log go, so that status can tell.
func (t *table) leave(w *queue.Writer, out outcome.Outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	h := t.haltOf(out)
	_, err := w.Append(ctx, &checkpoint.Control{Halt: h, By: "owner", At: h.At}, nil)
	if err = errors.Join(err, w.Release(ctx)); err != nil {
		t.log.Warn("the reason of the halt is not in the log", zap.Error(err))
		return
	}
	t.left = w.State().Seq
}

// work runs the ingest and the sinks of one life.
//
//	readers ─► pages ─► writer ─► log ─► appliers ─► sinks
//	                      ▲                  │ marks
//	                      └──────────────────┘
//
// hard is what everything hangs on; soft ends first and only stops the readers, so that a drain can follow.
func (t *table) work(soft context.Context, w *queue.Writer, o apply.Options) error {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(soft))
	defer cancel(nil)
	in := newIngest(t, w)
	o.Append = in.find
	sinks := apply.New(t.p.shared, o, t.letters, w.State())
	for _, s := range sinks {
		in.sinks = append(in.sinks, s)
	}
	defer context.AfterFunc(soft, func() {
		t.log.Info("drain: no more reading, what the log holds is applied", zap.Duration("at_most", t.p.o.Periods.Shutdown))
		late := time.AfterFunc(t.p.o.Periods.Shutdown, func() { cancel(errDrainTime) })
		context.AfterFunc(hard, func() { late.Stop() })
	})()
	g, ctx := errgroup.WithContext(hard)
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	defer context.AfterFunc(soft, stopReading)()
	applying, stopApplying := context.WithCancel(ctx)
	defer stopApplying()
	g.Go(func() error { return in.readAll(reading) })
	g.Go(func() error { return in.list(reading) })
	life := w.State().Life
	g.Go(func() error { return t.confirm(applying, life) })
	g.Go(func() error { return t.letters.Watch(applying, t.p.o.Periods.Trim) })
	for _, s := range sinks {
		g.Go(func() error { return s.Run(applying) })
	}
	g.Go(func() error {
		defer stopApplying()
		return in.write(ctx)
	})
	err := g.Wait()
	if soft.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

var errDrainTime = errors.New("shutdown_timeout is over before the log was drained; the rest is applied after the next start")

// paused holds the log, shows life, and waits for resume: it arrives as a control entry of somebody else,
// which fences the next beat.
func (t *table) paused(ctx context.Context, w *queue.Writer) error {
	t.log.Info("paused")
	t.halted.Store(nil)
	listening, cancel := context.WithCancel(ctx)
	defer cancel()
	nudges, _ := t.logOf().BeatRequests(listening) // without it resume just takes until the next beat
	tick := time.NewTicker(t.p.o.Periods.Beat)
	defer tick.Stop()
	for {
		t.observe(w.State())
		select {
		case <-ctx.Done():
			err := w.Release(context.WithoutCancel(ctx))
			t.saved.Store(err == nil)
			return err
		case <-nudges:
		case <-tick.C:
		}
		if _, err := w.Append(ctx, &checkpoint.Beat{Date: t.now()}, nil); err != nil && !errors.Is(err, queue.ErrFull) {
			return err
		}
	}
}

// now returns the service's clock as well as it is known.
func (t *table) now() change.Millis { return t.p.now() }

// retentionLeft returns the time until unread records may be lost; false while it is unknown.
func (t *table) retentionLeft() (time.Duration, bool) {
	left := t.status(time.Now()).Retention
	return time.Duration(left * float64(time.Second)), left >= 0
}
