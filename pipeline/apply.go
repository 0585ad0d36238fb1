package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// applier passes the log to one sink, from the sink's mark on, and moves the mark.
type applier struct {
	t      *table
	in     *ingest
	sink   string
	target func() target
	to     target
	prefix atomic.Pointer[prefix]
	until  atomic.Uint64 // drain: the last entry with changes; 0 while nobody drains
	memory *share
	gaveUp atomic.Bool // the drain found the sink halted
	wake   chan struct{}
	holes  map[string]bool // see holes
}

// target takes the changes of one entry. There are two: lanes into Bigtable, and the archive.
type target interface {
	// run works until ctx ends; nil then.
	run(ctx context.Context) error
	// wants says whether the sink has anything to do with the change.
	wants(c *change.Change) bool
	// take accepts a change whose slices stay valid, and calls e.done(1) once it is durable. It blocks while
	// the target is busy.
	take(ctx context.Context, c *change.Change, e *pending) error
}

func newApplier(t *table, in *ingest, sink string, to func() target, s *checkpoint.State) *applier {
	a := &applier{t: t, in: in, sink: sink, target: to, wake: make(chan struct{}, 1), memory: t.p.memory.share(), holes: holes(s)}
	a.prefix.Store(newPrefix(markOf(s, sink)))
	return a
}

// run makes pass after pass until ctx ends or, while draining, until everything up to the last change is
// durable. What a sink refuses or does not take now is tried again; reading goes on meanwhile, the log is there for that.
func (a *applier) run(ctx context.Context) error {
	var waited time.Duration // for a sink that is away, since it last took anything
	for {
		began := a.prefix.Load().at()
		err := a.pass(ctx)
		old := a.prefix.Load()
		old.abandon()
		out := outcome.OfSink(ctx, err)
		if out.Action != outcome.Retry && out.Action != outcome.Halt {
			return err
		}
		if old.at() != began {
			waited = 0
		}
		pause := a.t.p.o.Periods.Retry
		if out.Action == outcome.Retry && waited < pause {
			pause = min(pause, max(firstRetry, waited)) // doubles: 250 ms, 250 ms, 500 ms, 1 s …
			a.t.log.Warn("the sink is away: will be tried again", zap.String("sink", a.sink), zap.String("reason", out.Reason),
				zap.Duration("retry_in", pause))
		} else if err := a.halt(ctx, out); err != nil {
			return err
		}
		waited += pause
		if err := a.wait(ctx, pause); err != nil || a.gaveUp.Load() {
			return err
		}
		a.prefix.Store(old.again())
	}
}

// firstRetry is how soon a sink that is away is tried again for the first time.
const firstRetry = 250 * time.Millisecond

// halt writes a halt of the sink into the log.
func (a *applier) halt(ctx context.Context, out outcome.Outcome) error {
	h := &checkpoint.Halt{Sink: a.sink, Seq: out.Entry, Code: out.Code, Reason: out.Reason, At: a.t.now()}
	if h.Seq == 0 {
		h.Seq = a.prefix.Load().at().Seq + 1
	}
	a.t.log.Error("halt the sink: will be tried again", zap.String("sink", a.sink), zap.String("code", h.Code),
		zap.String("reason", h.Reason), zap.Duration("retry_in", a.t.p.o.Periods.Retry))
	return a.in.find(ctx, &checkpoint.Control{Halt: h, By: "owner", At: h.At})
}

// wait passes the time until the next try. A drain does not wait: what is left is applied after the next start.
func (a *applier) wait(ctx context.Context, pause time.Duration) error {
	t := time.NewTimer(pause)
	defer t.Stop()
	for a.until.Load() == 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
			return nil
		case <-a.wake:
		}
	}
	a.gaveUp.Store(true)
	return nil
}

// pass applies the log from the mark on.
func (a *applier) pass(ctx context.Context) error {
	a.to = a.target()
	g, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.Go(func() error { return a.to.run(ctx) })
	g.Go(func() error {
		defer cancel()
		return a.read(ctx)
	})
	g.Go(func() error { return a.drained(ctx, cancel) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) && a.isDrained() {
		return nil
	}
	return err
}

// drain asks the applier to end once everything up to seq is durable.
func (a *applier) drain(seq uint64) {
	a.until.Store(max(seq, 1))
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *applier) isDrained() bool {
	until := a.until.Load()
	return a.gaveUp.Load() || until > 0 && a.prefix.Load().at().Seq >= until
}

func (a *applier) drained(ctx context.Context, done context.CancelFunc) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
		case <-a.prefix.Load().progress:
		}
		if a.isDrained() {
			done()
			return nil
		}
	}
}

func (a *applier) read(ctx context.Context) error {
	mark := a.prefix.Load().at()
	r, err := a.t.logOf().Read(ctx, mark.Seq+1, mark.Hash)
	if err != nil {
		return fmt.Errorf("read log for %s: %w", a.sink, err)
	}
	defer r.Close(context.WithoutCancel(ctx))
	for {
		_, e, err := r.Next(ctx)
		if damage := (*queue.DamageError)(nil); errors.As(err, &damage) {
			if err := a.damaged(ctx, damage); err != nil {
				return err
			}
			r.SkipDamage(context.WithoutCancel(ctx), damage)
			continue
		}
		if err != nil {
			return fmt.Errorf("read log for %s: %w", a.sink, err)
		}
		if err := a.entry(ctx, r.Mark(), e); err != nil {
			return err
		}
	}
}

// frames are buffers of unpacked frames, by the power of two that holds them: a small frame must not keep the
// buffer of a large one. The changes of a frame alias its buffer until the last is done.
var frames [largestFrame + 1]sync.Pool

// largestFrame is the power of two that an entry's word about its own size is believed up to, and more than any frame
// has: what is larger yet, package queue refuses when it looks at the data.
const largestFrame = 26

// frameClass is the power of two of the buffer for so many bytes.
func frameClass(size int) int { return min(bits.Len(uint(max(size, 1<<16)-1)), largestFrame) }

func frameBuffer(class int) *[]byte {
	if buf, ok := frames[class].Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, 1<<class)
	return &buf
}

func putFrameBuffer(buf *[]byte) { frames[frameClass(cap(*buf))].Put(buf) }

func (a *applier) entry(ctx context.Context, at checkpoint.Mark, e *checkpoint.Entry) error {
	f, ok := e.Body.(*checkpoint.Frame)
	if !ok {
		a.prefix.Load().add(at, 0, nil).done(1)
		return nil
	}
	size, records := 0, 0
	for i := range f.Pages {
		size += f.Pages[i].Length
		records += f.Pages[i].Records
	}
	// Rule 9: memory is taken before the entry is unpacked.
	class := frameClass(size)
	release, err := a.memory.take(ctx, 1<<class)
	if err != nil {
		return err
	}
	buf := frameBuffer(class)
	p := a.prefix.Load().add(at, records, func() {
		release()
		putFrameBuffer(buf)
	})
	*buf, err = frame.Unpack(e, *buf, func(_ *checkpoint.PageHead, c *change.Change) error {
		if !a.to.wants(c) {
			p.done(1)
			return nil
		}
		return a.to.take(ctx, c, p)
	})
	if err != nil {
		return fmt.Errorf("apply entry %d to %s: %w", at.Seq, a.sink, err)
	}
	p.done(1)
	return nil
}
