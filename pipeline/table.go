package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
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
	m   *tableMetrics

	Program *transform.Program // compiled at the first life, for the table's key
	Info    source.TableInfo
	letters *letters
	stream  atomic.Pointer[queue.Log]

	rowMu sync.Mutex // covers row
	row   *bigtable.State
	lead  atomic.Int64 // of the row, readable while somebody holds the mutex and waits for Bigtable
	stale bool         // somebody else changed the row: the next life reads it again

	pressure queue.Pressure // as of the last look; the writer's loop owns it

	owning  atomic.Bool
	started atomic.Bool // the state is loaded, owning or standing by
	halted  atomic.Pointer[checkpoint.Halt]
	view    atomic.Pointer[view] // newest aggregate of the state; nil before the first claim
}

// view is what health and metrics show of the state. The writer loop makes a new one at every beat.
type view struct {
	Status TableStatus
	At     time.Time
}

func newTable(p *Pipeline, t Table, m *metrics) *table {
	return &table{
		Table: t, p: p, m: m.of(t.Source), log: p.log.With(zap.String("table", t.Source), zap.String("target", t.Target)),
	}
}

// haltError stops a table until somebody acts or the cause goes away.
type haltError struct{ halt checkpoint.Halt }

func (e *haltError) Error() string {
	return fmt.Sprintf("sink %s halted at entry %d: %s", e.halt.Sink, e.halt.Seq, e.halt.Reason)
}

// run returns nil when ctx ends and *RefusedError when the first life finds a log that is not ours. All other
// trouble is kept to this table.
func (t *table) run(ctx context.Context) error {
	defer t.m.owner.Set(0)
	for first := true; ; first = false {
		err := t.life(ctx)
		if ctx.Err() != nil {
			return nil
		}
		refused := (*RefusedError)(nil)
		if errors.As(err, &refused) && first {
			return err
		}
		if !t.rest(ctx, t.after(err)) {
			return nil
		}
	}
}

// rest waits before the next life, or until a nudge comes: resume sends one.
func (t *table) rest(ctx context.Context, pause time.Duration) bool {
	var nudges <-chan struct{}
	if l := t.logOf(); l != nil {
		listening, cancel := context.WithCancel(ctx)
		defer cancel()
		nudges, _ = l.Nudges(listening) // without it the pause just takes its time
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-nudges:
	case <-timer.C:
	}
	return true
}

// again is how soon a life is tried again that ended in doubt or lost its log.
const again = 250 * time.Millisecond

// after decides what the end of a life means and how long to wait before the next one.
func (t *table) after(err error) time.Duration {
	t.m.owner.Set(0)
	switch {
	case err == nil, doubtful(err):
		// Rule 4: what was in memory is gone with the life; the next one starts from what is stored.
		t.log.Warn("start again from the stored state", zap.Error(err))
		return again
	case errors.Is(err, queue.ErrLost), errors.Is(err, queue.ErrHeld):
		t.log.Warn("stand by: another owner holds the log", zap.Error(err))
		return again
	}
	h := haltOf(err)
	h.At = t.now()
	t.halted.Store(h)
	t.m.halted.Set(1)
	t.log.Error("halt the table", zap.String("code", h.Code), zap.String("reason", h.Reason), zap.Duration("retry_in", t.p.o.Periods.Retry))
	return t.p.o.Periods.Retry
}

// haltOf describes an error that ended a life.
func haltOf(err error) *checkpoint.Halt {
	halt := (*haltError)(nil)
	if errors.As(err, &halt) {
		h := halt.halt
		return &h
	}
	return &checkpoint.Halt{Sink: ownSink, Code: codeOf(err), Reason: err.Error()}
}

// ownSink stands for the pipeline itself in a halt: no sink is at fault.
const ownSink = "pipeline"

func doubtful(err error) bool {
	return errors.Is(err, queue.ErrDoubt) || errors.Is(err, queue.ErrChain) || errors.Is(err, queue.ErrGap) ||
		queue.Transient(err)
}

func codeOf(err error) string {
	switch refused, corrupt := (*RefusedError)(nil), (*checkpoint.CorruptError)(nil); {
	case errors.As(err, &refused), errors.Is(err, queue.ErrEmptied):
		return "log_refused"
	case errors.As(err, &corrupt):
		return "log_corrupt"
	}
	var src *source.Error
	if errors.As(err, &src) {
		return "source_" + src.Class.String()
	}
	return "error"
}

// life claims the log and works until ctx ends (nil, drained), or until something is in doubt, lost or halted.
func (t *table) life(ctx context.Context) error {
	w, err := t.claim(ctx)
	if err != nil {
		return err
	}
	t.started.Store(true)
	s := w.State()
	if s.Paused {
		return t.paused(ctx, w)
	}
	if s.Live() == nil {
		if err := t.start(ctx, w); err != nil {
			return err
		}
	}
	if err := t.issue(ctx); err != nil {
		return err
	}
	if err := t.openLetters(ctx); err != nil {
		return err
	}
	if s.Halted != nil && s.Halted.Sink == ownSink {
		if _, err := w.Append(ctx, &checkpoint.Control{Clear: true, By: "owner", At: t.now()}, nil); err != nil {
			return err
		}
	}
	t.halted.Store(nil)
	t.owning.Store(true)
	defer t.owning.Store(false)
	t.m.owner.Set(1)
	err = t.work(ctx, w)
	if err != nil && ctx.Err() == nil && !doubtful(err) && !errors.Is(err, queue.ErrLost) {
		t.leave(w, err)
	}
	return err
}

// leave writes down why the life ends and lets the log go, so that status can tell.
func (t *table) leave(w *queue.Writer, cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	h := haltOf(cause)
	h.Sink, h.At = ownSink, t.now()
	_, err := w.Append(ctx, &checkpoint.Control{Halt: h, By: "owner", At: h.At}, nil)
	if err = errors.Join(err, w.Release(ctx)); err != nil {
		t.log.Warn("the reason of the halt is not in the log", zap.Error(err))
	}
}

// work runs the ingest and the sinks of one life.
//
//	readers ─► pages ─► writer ─► log ─► appliers ─► sinks
//	                      ▲                  │ marks
//	                      └──────────────────┘
//
// hard is what everything hangs on; soft ends first and only stops the readers, so that a drain can follow.
func (t *table) work(soft context.Context, w *queue.Writer) error {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(soft))
	defer cancel(nil)
	in := newIngest(t, w)
	in.sinks = t.sinks(w.State(), in)
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
	for _, s := range in.sinks {
		g.Go(func() error { return s.run(applying) })
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
	t.observe(w.State())
	tick := time.NewTicker(t.p.o.Periods.Beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return w.Release(context.WithoutCancel(ctx))
		case <-tick.C:
			if _, err := w.Append(ctx, &checkpoint.Beat{Date: t.now()}, nil); err != nil {
				return err
			}
		}
	}
}

// now is the service's clock in unix ms; ours until the service has spoken.
func (t *table) now() int64 {
	if ms, ok := t.p.src.Now(); ok {
		return ms
	}
	return time.Now().UnixMilli()
}
