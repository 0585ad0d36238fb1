package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// table runs one table: one life after the other until the context ends. The goroutine of run owns
// its fields; during the work of a life the write loop observes, and owns pressure.
type table struct {
	*env
	shared   *apply.Shared
	refusals *outcome.Refusals
	stats    *apply.Stats
	copied   *resync.Stats
	row      *staterow.Row
	view     *tableView // what other goroutines may ask
	gate     settings.Gate

	info     source.TableInfo                        // as described when the current life began
	stream   atomic.Pointer[queue.Log]               // the log, once it is open
	letters  *apply.DeadLetters                      // of the current life, or of the last one
	append   atomic.Pointer[appender]                // into the log, of the current work or of the last one
	pressure queue.Pressure                          // how full the log was at the last look
	full     bool                                    // too full for the snapshot that raises it
	leave    atomic.Pointer[context.CancelCauseFunc] // ends run; nil before it begins
	yield    atomic.Pointer[context.CancelCauseFunc] // ends the current life; nil between two
	ended    chan struct{}                           // closed when run has ended
}

func newTable(e *env, shared *apply.Shared, stats *apply.Stats, copied *resync.Stats, all *outcome.Refusals) *table {
	t := &table{
		env: e, ended: make(chan struct{}), shared: shared, stats: stats, copied: copied, refusals: all, row: newRow(e),
		view: &tableView{env: e, history: latency.NewHistory(stats.Latency, time.Now())},
	}
	t.view.unseen.Store(new(time.Now()))
	return t
}

// newRow returns the pipeline's row of a table.
func newRow(e *env) *staterow.Row {
	shares := func(t Table) bool { return t.Target == e.Target && t.Source != e.Source }
	return staterow.New(staterow.Options{
		Pipeline: e.o.Name, Source: e.Source, Target: e.Target, Start: e.o.Start,
		Shares: slices.ContainsFunc(e.o.Tables, shares), Sole: e.Sole, Adopt: e.o.Adopt,
		ClaimTTL: e.o.Periods.ClaimTTL, Lead: e.o.Periods.Lead, Retry: e.o.Periods.Retry,
		Store: e.rows(), Client: e.bigtable, Now: e.now, Logger: e.log,
	})
}

const (
	restartPause = 250 * time.Millisecond // before the next life after one that lost its log or what it knew about it
	awayPause    = time.Second            // the same while NATS does not answer
	maxRestarts  = 10                     // attempts in a row, each of which fails at once, before the table halts
)

// run returns nil when ctx ends, and the refusals of all tables when none can run. Other trouble
// stays with the table.
func (t *table) run(ctx context.Context) error {
	defer func() {
		t.view.unsaved.Store(t.view.claimed.Load() && !t.view.saved.Load())
		t.view.claimed.Store(false)
	}()
	for {
		err := t.life(ctx)
		if errors.Is(err, errHandedOver) && ctx.Err() == nil {
			t.view.claimed.Store(false)
			t.stats.Rows.Forget()
			continue
		}
		out := outcome.OfTable(ctx, err)
		if out.Action == outcome.Drained {
			return nil
		}
		forget := out.Refused || errors.Is(err, queue.ErrUnopened)
		if out.Refused {
			t.view.started.Store(true) // the table's state is known: a rollout need not wait for it
			out = t.row.Judge(out)
		}
		if forget {
			t.row.Forget() // an operator may change the row, by recover
		}
		if refused := t.refusals.Add(t.Source, out, err); refused != nil {
			return refused
		}
		if !t.waitForNextLife(ctx, t.endLife(out, err)) {
			return nil
		}
	}
}

// waitForNextLife waits before the next life, at most until another process has written into the
// log, as resume does. It returns false when ctx ends.
func (t *table) waitForNextLife(ctx context.Context, pause time.Duration) bool {
	var requests <-chan struct{}
	if l := t.currentLog(); l != nil {
		listening, cancel := context.WithCancel(ctx)
		defer cancel()
		requests, _ = l.BeatRequests(listening) // without them the pause just lasts as long as it does
	}
	return outcome.AwaitNext(ctx, pause, requests, t.currentLog().Info)
}

// endLife prepares the next life according to the outcome of the last one, and returns how long to
// wait before it.
func (t *table) endLife(out outcome.Outcome, err error) time.Duration {
	t.view.claimed.Store(false)
	switch out.Action {
	case outcome.StandBy:
		t.log.Warn("stand by: another owner holds the log", zap.Error(err))
		t.stats.Rows.Forget()
		return restartPause
	case outcome.Again:
		// Rule 4: what was in memory is gone with the life; the next one starts from what is
		// stored.
		t.log.Warn("start again from the stored state", zap.Error(err))
		return restartPause
	}
	t.view.halt(t.haltOf(out))
	return t.o.Periods.Retry
}

// life claims the log and works until ctx ends (nil, drained), or until something is lost or
// halted. Work with an unknown outcome begins again from what is stored, as long as the log is
// still claimed.
func (t *table) life(ctx context.Context) error {
	t.row.BeginLife()
	w, err := t.claim(ctx)
	if err != nil {
		return err
	}
	ctx, yield := context.WithCancelCause(ctx)
	defer yield(nil)
	t.yield.Store(&yield)
	t.view.writer.Store(w)
	t.balancer.Group().Announce()
	defer func() {
		t.yield.Store(nil)
		t.view.writer.Store(nil)
		t.balancer.Group().Announce()
	}()
	t.refusals.NoteMatch(t.Source)
	for restarts := 0; ; restarts++ {
		began := time.Now()
		if err = t.runClaimed(ctx, w); err == nil || outcome.OfTable(ctx, err).Action != outcome.Again {
			break
		}
		pause := restartPause
		if time.Since(began) > t.o.Periods.ClaimTTL {
			restarts = 0
		} else if queue.Classify(err) == failure.Transient { // a server that is away is waited for, with the log in hand
			restarts, pause = 0, awayPause
		}
		if restarts == maxRestarts {
			err = &outcome.HaltError{Code: outcome.CodeUnknown, Reason: err.Error()}
			break
		}
		outcome.LogRestart(t.log, err)
		// Rule 4: what was in memory ended with the work; only what is stored counts.
		if err := w.Recover(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if failure.Pause(ctx, pause) != nil {
			break
		}
	}
	out := outcome.OfTable(ctx, err)
	switch {
	case out.Action == outcome.Halt:
		t.releaseHalted(w, out)
	case ctx.Err() != nil:
		t.release(ctx, w)
		t.noteEnd(w)
		if _, ok := successor(ctx); ok {
			return errHandedOver
		}
	}
	return err
}

// runClaimed does what the state of the claimed log requires: it waits while paused, starts the
// stream, or works.
func (t *table) runClaimed(ctx context.Context, w *queue.Writer) error {
	t.view.claimed.Store(true)
	t.view.saved.Store(false)
	t.row.NoteFence(w.State().Fence)
	if t.row.Stale() && !staterow.ProvesItself(w.State()) {
		reread := func(ctx context.Context) error { return t.row.Reread(ctx, t.currentLog(), t.info) }
		if err := t.beatWhile(ctx, w, reread); err != nil {
			return err
		}
	} else if t.row.Stale() && t.row.Agrees() { // another owner changed it
		t.row.Forget()
	}
	if err := t.raise(ctx, w); err != nil {
		return err
	}
	s := w.State()
	if s.Paused {
		return t.whileWatched(ctx, w, t.paused)
	}
	if s.LiveStream() == nil {
		if err := t.start(ctx, w); err != nil {
			return err
		}
	}
	if err := t.endRecovery(ctx, w); err != nil {
		return err
	}
	if err := t.switchMapping(ctx, w); err != nil {
		return err
	}
	if err := t.beginCopy(ctx, w); err != nil {
		return err
	}
	if err := t.beatWhile(ctx, w, t.row.Issue); err != nil {
		return err
	}
	o, arch := t.applyOptions(w.State())
	var letters *apply.DeadLetters
	err := t.beatWhile(ctx, w, func(ctx context.Context) (err error) {
		letters, err = apply.OpenDeadLetters(ctx, t.shared, o)
		return err
	})
	if err != nil {
		return err
	}
	if err := t.beatWhile(ctx, w, t.checkPremises); err != nil {
		return err
	}
	t.letters = letters
	t.view.owning.Store(true)
	defer t.view.owning.Store(false)
	return t.work(ctx, w, o, arch)
}

// work runs reading, writing and the sinks of one life.
//
//	readers ─► pages ─► write loop ─► log ─► sinks
//	                        ▲                  │ marks
//	                        └──────────────────┘
//
// hard is the context of everything; soft ends first and only stops the readers, so that a drain can follow.
func (t *table) work(soft context.Context, w *queue.Writer, o apply.Options, arch *archiving.Archiver) error {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(soft))
	defer cancel(nil)
	reads := t.ingestOptions(soft)
	in := ingest.New(reads, w, t.pressure)
	g, ctx := errgroup.WithContext(hard)
	applying, stopApplying := context.WithCancel(ctx)
	defer stopApplying()
	o.Append, o.Owned, o.Gate = in.Append, owned(applying, w), &t.gate
	t.gate.Begin()
	sinks := apply.New(t.shared, o, t.letters, w.State())
	defer t.view.showSink(sinks[0])()
	defer context.AfterFunc(soft, func() {
		t.log.Info("no more reading: what the log holds is applied, here or by the process that goes on with it",
			zap.Duration("at_most", t.o.Periods.Shutdown))
		late := time.AfterFunc(t.o.Periods.Shutdown, func() { cancel(errDrainTime) })
		context.AfterFunc(hard, func() { late.Stop() })
	})()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	items := t.resyncOptions(w.State(), in, sinks[0])
	copied, stopCopying := t.copyBeside(ctx, g, t.newCopier(w.State(), items))
	defer stopCopying()
	defer context.AfterFunc(soft, func() {
		stopCopying()
		<-copied // its last marks are stored before the drain begins
		stopReading()
	})()
	t.view.observeGaps(w.State())
	life, l, info, format, full := w.State().Life, t.currentLog(), t.info, w.State().Format, t.full
	g.Go(func() error { return t.format.Follow(reading, format, full) })
	requests := &resync.Requests{
		Options: items, Log: l, Program: t.row.Program, Client: t.bigtable, Target: t.Target,
		Foreign: t.foreign(items, t.writable(applying, o.Owned)).Delete, Heal: t.newHealer(arch, in).Heal,
	}
	t.view.requests.Store(requests)
	g.Go(func() error { return in.Read(reading) })
	if s := w.State(); t.archivedOnly() {
		g.Go(func() error { return t.serveArchived(reading, o, requests) })
	} else if s.Fence == nil { // Rule 12: behind a fence the table is read, and that is all
		t.repairBeside(reading, g, items, requests)
	}
	g.Go(func() error { return in.List(reading) })
	g.Go(func() error { return t.watchPremises(reading) })
	g.Go(func() error { return t.watchSettings(reading) })
	g.Go(func() error { return t.watchRow(reading, w) })
	g.Go(func() error { return t.writeHeartbeats(reading, reads.Heartbeats) })
	g.Go(func() error { return t.row.Confirm(applying, life, l, info) })
	g.Go(func() error { return t.letters.Watch(applying, t.o.Periods.Trim) })
	t.archiveBeside(applying, g, arch, in)
	marked := make([]ingest.Sink, len(sinks))
	for i, s := range sinks {
		marked[i] = s
		g.Go(func() error { return s.Run(applying) })
	}
	g.Go(func() error {
		saved, err := in.Write(ctx, marked)
		t.view.saved.Store(saved)
		if err == nil { // else the group stops the sinks: one that is stopped before it would hide this error
			stopApplying()
		}
		return err
	})
	if err := g.Wait(); soft.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// repairBeside runs what makes rows true again when the log or a command orders it.
func (t *table) repairBeside(
	ctx context.Context, g *errgroup.Group, items resync.Options, requests *resync.Requests,
) {
	g.Go(func() error { return t.resyncBeside(ctx, items) })
	g.Go(func() error { return t.healGaps(ctx, items) })
	g.Go(func() error { return t.verifyBeside(ctx, items) })
	g.Go(func() error { return t.followCluster(ctx, items) })
	g.Go(func() error { return requests.Run(ctx) })
}

// copyBeside runs a copy beside reading and applying; there may be none. stop ends it early; ended
// is closed when it has ended and its last marks are stored.
func (t *table) copyBeside(
	ctx context.Context, g *errgroup.Group, c *resync.Copier,
) (ended <-chan struct{}, stop func()) {
	done := make(chan struct{})
	copying, stop := context.WithCancel(ctx)
	if c == nil {
		close(done)
		return done, stop
	}
	t.view.copier.Store(c)
	g.Go(func() error {
		defer close(done)
		defer t.view.copier.Store(nil)
		if err := c.Run(copying); err != nil {
			return err
		}
		return c.Save(ctx)
	})
	return done, stop
}

var errDrainTime = errors.New(
	"shutdown_timeout is over before the log was drained; the rest is applied after the next start")

// ingestOptions returns what reading and writing need to know about the table in this life.
func (t *table) ingestOptions(life context.Context) ingest.Options {
	info := t.info
	info.Name = t.Source
	return ingest.Options{
		Table: info, Source: t.source, MaxPayload: t.queue.MaxPayload(), Periods: t.o.Periods.Ingest(), Row: t.row,
		Logger: t.log, Heartbeats: t.newHeartbeats(), HeartbeatEvery: t.Heartbeat.Every,
		Observe: func(s *checkpoint.State, p queue.Pressure) {
			t.pressure = p
			t.observe(s)
		},
		Beating: t.view.beating, Successor: func() (string, bool) { return successor(life) },
		ArchiveHead: t.view.archiveHead(), Tracer: t.o.Tracer,
	}
}
