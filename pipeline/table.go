package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/life"
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

	info     source.TableInfo          // as described when the current life began
	stream   atomic.Pointer[queue.Log] // the log, once it is open
	letters  *apply.DeadLetters        // of the current life, or of the last one
	pressure queue.Pressure            // how full the log was at the last look
	full     bool                      // too full for the snapshot that raises it

	otherMapping bool // the last life was refused for its mapping, which is compiled again

	leaving  atomic.Pointer[life.Leaving] // of run; nil before it begins
	yielding atomic.Pointer[life.Leaving] // of the current claim; nil between two
	ended    chan struct{}                // closed when run has ended
}

func newTable(e *env, shared *apply.Shared, stats *apply.Stats, copied *resync.Stats, all *outcome.Refusals) *table {
	t := &table{
		env: e, ended: make(chan struct{}), shared: shared, stats: stats, copied: copied, refusals: all, row: newRow(e),
		view: &tableView{env: e, history: latency.NewHistory(stats.Latency, time.Now())},
	}
	t.view.publish(func(s *snapshot) { s.unseen = time.Now() })
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
	defer t.view.publish(func(s *snapshot) { s.phase, s.unsaved = phaseIdle, s.phase >= phaseClaimed && !s.saved })
	for {
		err := t.own(ctx)
		if errors.Is(err, errHandedOver) && ctx.Err() == nil {
			t.view.setPhase(phaseIdle)
			t.stats.Rows.Forget()
			continue
		}
		out := outcome.OfTable(ctx, err)
		if out.Action == outcome.Drained {
			return nil
		}
		forget := out.Refused || errors.Is(err, queue.ErrUnopened)
		if out.Refused {
			t.otherMapping = out.Code == outcome.CodeMapping
			t.view.publish(func(s *snapshot) { s.loaded = true })
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
	t.view.setPhase(phaseIdle)
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

// own claims the log and works until ctx ends (nil, drained), or until something is lost or halted.
// A life with an unknown outcome is followed by another one from what is stored, as long as the log
// is still claimed.
func (t *table) own(ctx context.Context) error {
	t.row.BeginLife()
	w, err := t.claim(ctx)
	if err != nil {
		return err
	}
	ctx, yielding := life.WithLeaving(ctx, t.leaving.Load())
	defer yielding.Leave("")
	t.yielding.Store(yielding)
	t.view.publish(func(s *snapshot) { s.writer = w })
	t.balancer.Group().Announce()
	defer func() {
		t.yielding.Store(nil)
		t.view.publish(func(s *snapshot) { s.writer = nil })
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
		t.release(w, yielding.Successor())
		t.noteEnd(w)
		if yielding.Successor() != "" {
			return errHandedOver
		}
	}
	return err
}

// runClaimed does what the state of the claimed log requires: it waits while paused, starts the
// stream, or works.
func (t *table) runClaimed(ctx context.Context, w *queue.Writer) error {
	t.view.publish(func(s *snapshot) { s.phase, s.saved = phaseClaimed, false })
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
	l := t.newLife(w)
	defer l.Close()
	o, arch := t.applyOptions(l, w.State())
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
	return t.work(l, w, o, arch)
}
