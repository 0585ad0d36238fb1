package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue"
)

// drainPeriod is how often the drain checks whether the sinks are done.
const drainPeriod = 20 * time.Millisecond

// handOverGrace is how long calls in flight have to succeed when another process goes on with the
// log at once.
const handOverGrace = 300 * time.Millisecond

// drain applies what is in the log, for most of the time that Periods.Shutdown gives, then writes
// the marks and releases the log; saved reports whether it did both. No shard is read any more;
// pages that were not stored were dropped, and are read again after the next start. A log that
// another process goes on with is not drained: calls in flight have a moment, and are cut.
func (w *writer) drain(ctx context.Context) (saved bool, err error) {
	to := w.o.Successor()
	handedOver := to != ""
	patience := w.o.Periods.Shutdown * 4 / 5
	if handedOver {
		patience = min(patience, handOverGrace)
	}
	for _, s := range w.sinks {
		s.Drain(w.log.State().LastFrame)
	}
	if err := w.awaitSinks(ctx, patience, handedOver); err != nil {
		return false, err
	}
	if handedOver {
		for _, s := range w.sinks {
			s.Drain(0) // what is in flight is applied by the next owner, as the same cells
		}
	}
	// A log that is too full for marks is released without them: applying the same changes again
	// leaves the same cells.
	full := w.storeMarks(ctx)
	if full != nil && !errors.Is(full, queue.ErrFull) {
		return false, full
	}
	if err := w.log.HandOver(ctx, to); err != nil {
		return false, fmt.Errorf("release log: %w", err)
	}
	w.observe()
	if handedOver {
		w.o.Logger.Info("handed the log over", zap.String("to", to), zap.Bool("named", w.log.State().ReleasedTo == to))
	} else {
		w.o.Logger.Info("released the log", zap.Bool("drained", w.drained()))
	}
	return full == nil, nil
}

// awaitSinks waits until the sinks are done, and beats meanwhile: that may take longer than a claim
// lives.
func (w *writer) awaitSinks(ctx context.Context, patience time.Duration, handedOver bool) error {
	p := w.o.Periods
	enough := time.NewTimer(patience)
	defer enough.Stop()
	tick, mark, beat := time.NewTicker(drainPeriod), time.NewTicker(p.Mark), time.NewTicker(p.Beat)
	defer tick.Stop()
	defer mark.Stop()
	defer beat.Stop()
	for !w.drained() {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-enough.C:
			if !handedOver {
				w.o.Logger.Warn("the log is not drained in time: the rest is applied after the next start",
					zap.Duration("waited", patience))
			}
			return nil
		case <-tick.C:
		case <-mark.C:
			err = w.storeMarks(ctx)
		case <-beat.C:
			err = w.beat(ctx)
		case r := <-w.handoff.requests:
			err = w.storeRequest(ctx, r)
		}
		if err = w.tolerateFull(err); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) drained() bool {
	for _, s := range w.sinks {
		if !s.Drained() {
			return false
		}
	}
	return true
}
