package apply

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
)

// Sink applies a table's log to one service, from the sink's mark on. Its public methods may be
// called by any goroutine.
type Sink struct {
	name   string
	o      *Options
	shared *Shared

	newTarget func() target
	memory    *memoryShare
	damage    *damagedRanges
	fence     *checkpoint.Fence // behind which nothing is applied; nil: there is none, or it does not concern the sink

	acks    atomic.Pointer[protocol.MarkTracker] // of the running pass; a retry begins a new one at its mark
	lastSeq atomic.Uint64                        // the drain ends here, at the last entry with changes; 0: no drain
	gaveUp  atomic.Bool                          // the drain found the sink halted
	wakeUp  chan struct{}                        // capacity 1: the drain has begun

	step     passStep    // of the running pass
	retrying atomic.Bool // no pass runs until the next try

	ended chan struct{} // closed when Run has returned
	mu    sync.Mutex    // covers what follows
	lanes *lanes        // of the running pass; nil between two, and for the archive
	began chan struct{} // closed when the next pass begins
}

// New returns the sinks of a table for one life: Bigtable, where the table has a target, and the
// archive, where it has one; there is at least one of them. They are independent: each has its own
// mark, its own pass over the log, and its own halts. The state is the log's when the life began.
func New(shared *Shared, o Options, letters *DeadLetters, s *checkpoint.State) []*Sink {
	o.lives, o.epoch = s.Lives(), s.Epoch
	letters.continueHalted(s)
	var all []*Sink
	if o.Target != "" {
		lanes := func() target { return newLanes(shared, &o, letters) }
		all = append(all, newSink(checkpoint.SinkBigtable, shared, &o, s, lanes))
		all[0].fence = s.Fence // the archive goes on
		h := s.AllHalts()[checkpoint.SinkBigtable]
		o.held = h != nil && h.Code == outcome.CodePremise
	}
	if o.Archive != nil {
		archive := func() target { return newArchiver(&o, letters) }
		all = append(all, newSink(checkpoint.SinkArchive, shared, &o, s, archive))
	}
	return all
}

func newSink(name string, shared *Shared, o *Options, s *checkpoint.State, newTarget func() target) *Sink {
	sink := &Sink{
		name: name, o: o, shared: shared, newTarget: newTarget, memory: shared.memory.NewShare(),
		damage: newDamagedRanges(s), wakeUp: make(chan struct{}, 1),
		ended: make(chan struct{}), began: make(chan struct{}),
	}
	sink.acks.Store(protocol.NewMarkTracker(firstMark(s, name)).CountFrom(s))
	return sink
}

// firstMark returns where a sink goes on: at its stored mark or, for a new sink, at the end of the
// log as it is now.
func firstMark(s *checkpoint.State, sink string) checkpoint.Mark {
	if m, ok := s.Marks[sink]; ok {
		return m
	}
	return checkpoint.Mark{Seq: s.Seq, Hash: s.Hash}
}

// Name returns the sink's name in marks, metrics and dead letters.
func (s *Sink) Name() string { return s.name }

// Acked returns the mark, below which all changes are durable (Rule 1), and the newest entry with
// changes that this process moved it past; 0 while there is none.
func (s *Sink) Acked() (mark checkpoint.Mark, lastChanges uint64) { return s.acks.Load().Acked() }

// Drain makes Run return once every entry up to seq is durable, up to the fence if there is one; or
// at once if the sink is halted or away.
func (s *Sink) Drain(seq uint64) {
	if s.fence != nil {
		seq = min(seq, s.fence.Last)
	}
	s.lastSeq.Store(max(seq, 1))
	signal(s.wakeUp)
}

// Drained reports whether a drain has nothing more to wait for: all is durable, or the sink takes
// nothing.
func (s *Sink) Drained() bool {
	until := s.lastSeq.Load()
	return s.gaveUp.Load() || until > 0 && s.acks.Load().Mark().Seq >= until
}

// Run makes pass after pass over the log until ctx ends or the sink is drained. When the sink
// refuses a change or does not answer, it is tried again, and reading goes on meanwhile: the log is
// there for that. An error concerns the whole table.
func (s *Sink) Run(ctx context.Context) error {
	defer close(s.ended)
	var waited time.Duration // since the sink last made progress
	for {
		began := s.acks.Load().Mark()
		err := s.runPass(ctx)
		old := s.acks.Load()
		old.Abandon()
		out := outcome.OfSink(ctx, err)
		if out.Action != outcome.Retry && out.Action != outcome.Halt {
			return err
		}
		if old.Mark() != began {
			waited = 0
		}
		pause := s.o.Retry
		if out.Action == outcome.Retry && waited < pause {
			pause = min(pause, max(firstRetry, waited)) // doubles: 250 ms, 250 ms, 500 ms, 1 s …
			s.o.Logger.Warn("the sink is away: will be tried again", zap.String("sink", s.name),
				zap.String("reason", out.Reason), zap.Duration("retry_in", pause))
		} else if err := s.halt(ctx, out); err != nil {
			return err
		}
		waited += pause
		if err := s.pause(ctx, pause); err != nil || s.gaveUp.Load() {
			return err
		}
		s.acks.Store(old.Next())
	}
}

// firstRetry is how soon a sink that is away is tried again for the first time.
const firstRetry = 250 * time.Millisecond

// halt records in the log that the sink is halted, and why.
func (s *Sink) halt(ctx context.Context, out outcome.Outcome) error {
	h := &checkpoint.Halt{
		Sink: s.name, Seq: out.Entry, Code: out.Code, Reason: out.Reason, At: s.shared.now(), Held: out.Held,
	}
	if h.Seq == 0 {
		h.Seq = s.acks.Load().Mark().Seq + 1
	}
	if s.name == checkpoint.SinkBigtable {
		s.o.held = h.Code == outcome.CodePremise
	}
	s.o.Logger.Error("halt the sink: will be tried again", zap.String("sink", s.name), zap.String("code", h.Code),
		zap.String("reason", h.Reason), zap.Duration("retry_in", s.o.Retry))
	return s.o.Append(ctx, &checkpoint.Control{Halt: h, By: "owner", At: h.At})
}

// pause waits until the next try. A drain does not wait: what is left is applied after the next
// start.
func (s *Sink) pause(ctx context.Context, d time.Duration) error {
	s.retrying.Store(true)
	defer s.retrying.Store(false)
	t := time.NewTimer(d)
	defer t.Stop()
	for s.lastSeq.Load() == 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
			return nil
		case <-s.wakeUp:
		}
	}
	s.gaveUp.Store(true)
	return nil
}

// runPass applies the log once from the mark on, until it fails, ctx ends or the sink is drained.
func (s *Sink) runPass(ctx context.Context) error {
	acks, to := s.acks.Load(), s.newTarget()
	p := &pass{
		sink: s.name, o: s.o, target: to, acks: acks, memory: s.memory, damage: s.damage, now: s.shared.now, fence: s.fence,
		step: &s.step,
	}
	if l, ok := to.(*lanes); ok {
		s.setLanes(l)
		defer s.setLanes(nil)
	}
	err := p.run(ctx, func(ctx context.Context) error { return s.awaitDrain(ctx, acks) })
	if errors.Is(err, context.Canceled) && s.Drained() {
		return nil
	}
	return err
}

// setLanes lets resyncs into the lanes of a pass; nil keeps them until the next pass.
func (s *Sink) setLanes(l *lanes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes = l; l != nil {
		close(s.began)
		s.began = make(chan struct{})
	}
}

// Backlog returns how many changes the sink has read from the log and not applied, and for how long
// the oldest of them has waited. It is cheap.
func (s *Sink) Backlog() (changes int, oldest time.Duration) {
	return s.acks.Load().Backlog(time.Now())
}

// Pending returns how many of the changes that the log holds are not durable at the sink. It is
// false while that is not known: after a start, until the sink has passed what the log held then,
// unless it had applied all of it. It is cheap.
func (s *Sink) Pending(changes uint64) (n uint64, ok bool) { return s.acks.Load().Behind(changes) }

// awaitDrain returns nil once the sink is drained, or ctx ends.
func (s *Sink) awaitDrain(ctx context.Context, acks *protocol.MarkTracker) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wakeUp:
		case <-acks.Progress():
		}
		if s.Drained() {
			return nil
		}
	}
}
