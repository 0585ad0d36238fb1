package pipeline

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

var errHandedOver = errors.New("the log was handed over") // by an owner that has ended

// releaseTime is how long the release of a log may take. Without it the next owner waits until this
// one counts as gone.
const releaseTime = 5 * time.Second

// release gives up a log that was not released in the course of the work, to a process or, with "",
// to any, so that no other process waits for it.
func (t *table) release(w *queue.Writer, to string) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	err := giveUp(ctx, w, to)
	switch {
	case err == nil && to != "":
		t.log.Info("handed the log over", zap.String("to", to))
	case err == nil:
		t.log.Info("released the log")
	case !errors.Is(err, queue.ErrLost):
		t.log.Warn("the log is not released: the next owner waits until this one counts as gone", zap.Error(err))
	}
}

// giveUp releases a log, to another process or to any. What is stored may be unknown before: then
// the log is read again first.
func giveUp(ctx context.Context, w *queue.Writer, to string) error {
	err := w.HandOver(ctx, to)
	if errors.Is(err, queue.ErrOutcomeUnknown) { // of what was appended before, most often
		if err = w.Recover(ctx); err == nil {
			err = w.HandOver(ctx, to)
		}
	}
	return err
}

// releaseHalted stores why the life ends and releases the log, so that status can show the reason.
func (t *table) releaseHalted(w *queue.Writer, out outcome.Outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	h := t.haltOf(out)
	c := &checkpoint.Control{Halt: h, By: "owner", At: h.At}
	_, err := w.Append(ctx, c, nil)
	if errors.Is(err, queue.ErrOutcomeUnknown) { // the end of the life cut an append off
		if err = w.Recover(ctx); err == nil {
			_, err = w.Append(ctx, c, nil)
		}
	}
	if err = errors.Join(err, giveUp(ctx, w, t.balancer.Failed(t.Source))); err != nil {
		t.log.Warn("the reason of the halt is not in the log", zap.Error(err))
	}
}

// haltOf returns the halt of the pipeline itself for an outcome.
func (t *table) haltOf(out outcome.Outcome) *checkpoint.Halt {
	return &checkpoint.Halt{Sink: outcome.Pipeline, Seq: out.Entry, Code: out.Code, Reason: out.Reason, At: t.now()}
}

// paused holds the log and beats until resume: that arrives as a control entry of another process,
// after which the next beat is refused.
func (t *table) paused(ctx context.Context, w *queue.Writer) error {
	t.log.Info("paused")
	t.view.endHalt()
	listening, cancel := context.WithCancel(ctx)
	defer cancel()
	requests, _ := t.currentLog().BeatRequests(listening) // without them resume just waits for the next beat
	tick := time.NewTicker(t.o.Periods.Beat)
	defer tick.Stop()
	for {
		t.observe(w.State())
		select {
		case <-ctx.Done():
			return t.endPause(ctx, w)
		case <-requests:
		case <-tick.C:
		}
		err := t.beat(ctx, w)
		if err == nil && w.State().Format < t.format.Target() {
			err = t.raise(ctx, w)
		}
		switch {
		case err != nil && ctx.Err() != nil: // the end may have cut the append off
			return t.endPause(ctx, w)
		case err != nil:
			return err
		}
	}
}

// endPause hands the log of a paused table over when its planned end has begun. Nothing was read
// since the pause, so the log has the newest marks.
func (t *table) endPause(ctx context.Context, w *queue.Writer) error {
	owned := t.yielding.Load()
	select {
	case <-owned.Left():
	default: // what the row shows has ended the pause: the log stays in hand
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	err := giveUp(ctx, w, owned.Successor())
	t.view.publish(func(s *snapshot) { s.saved = err == nil })
	return err
}
