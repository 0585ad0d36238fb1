package apply

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// pass reads the log once from a mark on and hands its changes to a target. run is called once.
type pass struct {
	sink   string
	o      *Options
	target target
	acks   *protocol.MarkTracker
	memory *memoryShare
	damage *damagedRanges
	now    func() change.Millis
	fence  *checkpoint.Fence // nil: there is none
	step   *passStep
}

// target makes changes durable in a service. There are two: the lanes into Bigtable, and the
// archiver.
type target interface {
	// run works until ctx ends; nil then.
	run(ctx context.Context) error
	// wants reports whether the change concerns the target at all.
	wants(c *change.Change) bool
	// submit takes a change with slices that stay valid, and calls e.Ack(1) once it is durable. It
	// blocks while the target is busy.
	submit(ctx context.Context, c *change.Change, e *protocol.TrackedEntry) error
}

// run applies the log until something fails, ctx ends, or awaitDrain returns: then everything is
// applied.
func (p *pass) run(ctx context.Context, awaitDrain func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.Go(func() error { return p.target.run(ctx) })
	g.Go(func() error {
		defer cancel()
		return p.read(ctx)
	})
	g.Go(func() error {
		defer cancel()
		return awaitDrain(ctx)
	})
	return g.Wait()
}

// read reads until ctx ends or something fails. Entries that cannot be read are skipped once their
// gap is accepted.
func (p *pass) read(ctx context.Context) error {
	mark := p.acks.Mark()
	r, err := p.o.Log.Read(ctx, mark.Seq+1, mark.Hash)
	if err != nil {
		return fmt.Errorf("read log for %s: %w", p.sink, err)
	}
	defer r.Close(context.WithoutCancel(ctx))
	judge := protocol.Pass{Epoch: p.o.epoch, Fence: p.fence}
	defer p.step.set(stepNone)
	for at := mark.Seq; ; at = r.Mark().Seq {
		p.step.read(at)
		if judge.Before(at+1) == protocol.PassHolds {
			return p.hold(ctx)
		}
		_, e, err := r.Next(ctx)
		p.step.set(stepUnpack)
		if damage := (*queue.DamageError)(nil); errors.As(err, &damage) {
			if err := p.damage.record(ctx, p.o, damage, p.now()); err != nil {
				return err
			}
			r.SkipDamage(context.WithoutCancel(ctx), damage)
			continue
		}
		if err != nil {
			return fmt.Errorf("read log for %s: %w", p.sink, err)
		}
		switch judge.Next(r.Mark().Seq, e) {
		case protocol.PassEnds:
			return fmt.Errorf("read log for %s: %w: entry %d is of epoch %d", p.sink, queue.ErrLost, r.Mark().Seq, e.Epoch)
		case protocol.PassHolds:
			return p.hold(ctx)
		}
		if err := p.submitEntry(ctx, r.Mark(), e); err != nil {
			return err
		}
	}
}

// hold waits at the fence until ctx ends: the life ends when the fence is taken away.
func (p *pass) hold(ctx context.Context) error {
	p.step.set(stepNone)
	p.o.Logger.Info("the sink stands at the fence of a cutover", zap.String("sink", p.sink),
		zap.String("cutover", p.fence.ID), zap.Uint64("entry", p.fence.Seq))
	<-ctx.Done()
	return fmt.Errorf("stand at the fence: %w", context.Cause(ctx))
}

// submitEntry hands the changes of a frame to the target. An entry without changes is acked at
// once.
func (p *pass) submitEntry(ctx context.Context, at checkpoint.Mark, e *checkpoint.Entry) error {
	f, ok := e.Body.(*checkpoint.Frame)
	if !ok {
		p.acks.Add(at, 0, nil).Ack(1)
		return nil
	}
	size, records := 0, 0
	for i := range f.Pages {
		size += f.Pages[i].Length
		records += f.Pages[i].Records
	}
	// Rule 9: memory is taken before the entry is unpacked.
	class := bufferClass(size)
	p.step.set(stepMemory)
	release, err := p.memory.Acquire(ctx, 1<<class)
	p.step.set(stepUnpack)
	if err != nil {
		return err
	}
	buf := getBuffer(class)
	open := p.acks.Add(at, records, func() {
		release()
		putBuffer(buf)
	})
	open.Span = p.o.Tracer.Apply(p.o.Source, p.sink, at, records)
	*buf, err = frame.Unpack(e, *buf, func(_ *checkpoint.PageHead, c *change.Change) error {
		if !p.target.wants(c) {
			open.Ack(1)
			return nil
		}
		return p.target.submit(ctx, c, open)
	})
	if err != nil {
		return fmt.Errorf("apply entry %d to %s: %w", at.Seq, p.sink, err)
	}
	open.Ack(1)
	return nil
}
