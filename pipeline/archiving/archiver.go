package archiving

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/journal"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// Names of the archive's sinks in halts and messages. What copies the table's log into the
// archive's stream is the sink "archive".
const (
	SinkObjects = "archive.objects"
	SinkSubject = "archive.subject"
)

// Options are what the archive of a table needs in one life of the table.
type Options struct {
	Place
	Pipeline, Table string
	Owner           string
	Life, Epoch     uint64 // of the claim of the table's log
	Open            func(ctx context.Context) (*journal.Journal, error)
	Now             func() change.Millis
	Retry           time.Duration // between two tries of what is halted
	// FromStart is set when the table's log holds no records yet, so the archive misses none.
	FromStart bool
	// Recovered is set when the log is new because an earlier one was lost.
	Recovered bool
	// Resumed is set when the log holds records and no mark of the archive: the table had none, for
	// a time or ever.
	Resumed bool
	// Known is the head of the archive's stream that the table's log holds.
	Known checkpoint.ArchiveHead
	// Facts returns what the table's log holds about an hour. It is called often. Nil: as Observe
	// found it.
	Facts func(layout.Hour) Facts
	// Halted are the sinks of the archive that the log has as halted. Halt stores that one is, and
	// Clear that it is not any more; both may be called again.
	Halted []string
	Halt   func(ctx context.Context, sink, code, reason string) error
	Clear  func(ctx context.Context, sink string) error
	// Letter stores a dead letter of SinkSubject: an event, with the message that is never taken.
	// It may be called again.
	Letter  func(ctx context.Context, e *transform.Event, body []byte, code, reason string) error
	Metrics *Metrics
	Logger  *zap.Logger
}

// Archiver runs the archive of a table during one life of the table. Its methods may be called by
// several goroutines.
type Archiver struct {
	o     Options
	ready chan *life // holds the life that takes records
	facts atomic.Pointer[logFacts]
	// through is the time up to which every deletion is in the archive's stream, according to the
	// table's log.
	through atomic.Int64
	healing atomic.Bool // events of gaps are being stored: their hours are over, and are not cut at each of them

	mu     sync.Mutex // covers what follows
	known  checkpoint.ArchiveHead
	status Status
	halted map[string]bool
	worked map[string]int // how often a sink has worked
	nudge  chan struct{}  // closed when something may be cut or closed
}

// New returns the archive of a table; Run runs it.
func New(o Options) *Archiver {
	o.Place = o.withDefaults()
	a := &Archiver{
		o: o, ready: make(chan *life), halted: map[string]bool{}, worked: map[string]int{}, nudge: make(chan struct{}),
		known:  o.Known,
		status: Status{Objects: o.Objects != nil, Subject: o.Subject != nil, OnStall: onStall(o.Letters)},
	}
	if o.Facts == nil {
		a.o.Facts = a.factsOf
	}
	for _, sink := range o.Halted {
		a.halted[sink] = true
	}
	return a
}

// ErrOvertaken means that a later owner of the table's log writes the archive.
var ErrOvertaken = errors.New("a later owner of the log writes the archive")

// Run runs the archive until ctx ends. Whatever fails is tried again: the table's log goes on
// meanwhile.
func (a *Archiver) Run(ctx context.Context) error {
	for pause := firstPause; ctx.Err() == nil; {
		began := time.Now()
		err := a.life(ctx)
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		if err != nil && ctx.Err() == nil {
			a.note(func(s *Status) { s.Trouble = err.Error() })
			a.o.Logger.Warn("the archive's stream: begin again from what is stored", zap.Error(err),
				zap.Duration("retry_in", pause))
		}
		_ = failure.Pause(ctx, pause) // ended by ctx alone
		pause = min(2*pause, longestPause)
	}
	return nil
}

const firstPause, longestPause = 250 * time.Millisecond, 30 * time.Second

// life is the time from one fold of the archive's stream until something is unknown.
type life struct {
	a         *Archiver
	w         *writer
	published atomic.Uint64 // the entry up to which the subject has everything; it may be ahead of what is stored

	form object.Options // of the objects; set by settleColumns, and used by the goroutine of the objects alone
}

// life claims the stream and works until ctx ends, or until it is unknown what the stream holds.
func (a *Archiver) life(ctx context.Context) error {
	w, err := a.claim(ctx)
	if err != nil {
		return err
	}
	a.note(func(s *Status) { s.Trouble = "" })
	l := &life{a: a, w: w}
	a.clearAbsent(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.wait(ctx) })
	g.Go(func() error { return l.offer(ctx) })
	g.Go(func() error { return l.maintain(ctx) })
	if a.o.Objects != nil {
		g.Go(func() error { return l.retried(ctx, SinkObjects, l.runObjects) })
	}
	if a.o.Subject != nil {
		g.Go(func() error { return l.retried(ctx, SinkSubject, l.publish) })
	}
	return g.Wait()
}

// clearAbsent ends the halts of sinks that the archive does not have any more.
func (a *Archiver) clearAbsent(ctx context.Context) {
	if a.o.Objects == nil {
		a.clear(ctx, SinkObjects)
	}
	if a.o.Subject == nil {
		a.clear(ctx, SinkSubject)
	}
}

// claim folds the stream and appends a claim: an owner that was overtaken in the table's log stops
// here.
func (a *Archiver) claim(ctx context.Context) (*writer, error) {
	j, err := a.o.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.SetLimit(ctx); err != nil {
		a.o.Logger.Warn("the limit of the archive's stream stays as it is", zap.Error(err))
	}
	s, end, info, err := fold(ctx, j)
	if err != nil {
		return nil, err
	}
	if was := s.Claim; was.Life > a.o.Life || was.Life == a.o.Life && was.Epoch > a.o.Epoch {
		return nil, fmt.Errorf("%w: %s, epoch %d", ErrOvertaken, was.Owner, was.Epoch)
	}
	if s.Strays > 0 {
		a.o.Logger.Warn("messages in the archive's stream that are none of its own: they are left out",
			zap.String("stream", j.Name()), zap.Int("messages", s.Strays))
	}
	w := newWriter(j, s, end, info)
	err = w.append(ctx, &ledger.Claim{
		Owner: a.o.Owner, Life: a.o.Life, Epoch: a.o.Epoch, Date: a.o.Now(), Lost: a.lost(s),
		Objects: a.o.Objects != nil, Subject: a.o.Subject != nil, FromStart: a.o.FromStart,
		Resumed: a.o.Resumed,
	})
	if err != nil {
		return nil, fmt.Errorf("claim the archive's stream: %w", err)
	}
	w.view(a.noteHead)
	return w, nil
}

// offer hands the life to each call of Store.
func (l *life) offer(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case l.a.ready <- l:
		}
	}
}

// maintain appends snapshots and trims, and ends the life when an append has failed.
func (l *life) maintain(ctx context.Context) error {
	for {
		if err := l.w.maintain(ctx); err != nil && !errors.Is(err, journal.ErrFull) {
			return err
		}
		l.observe(ctx)
		if err := failure.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}
