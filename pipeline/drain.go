package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue"
)

// finish drains: what is in the log is applied, for most of the time that there is, then the marks and a
// snapshot are written and the log is let go. Nobody reads any more; what was read and not stored is read
// again after the next start.
func (in *ingest) finish(ctx context.Context) error {
	for len(in.arrivals) > 0 {
		a := <-in.arrivals
		a.release()
	}
	for _, a := range in.sinks {
		a.Drain(in.w.State().LastFrame)
	}
	if err := in.drain(ctx); err != nil {
		return err
	}
	// A log that is too full for marks is let go without them: what is applied again is the same cells.
	full := in.marks(ctx)
	if full != nil && !errors.Is(full, queue.ErrFull) {
		return full
	}
	if err := in.w.Release(ctx); err != nil {
		return fmt.Errorf("release log: %w", err)
	}
	in.t.saved.Store(full == nil)
	in.t.observe(in.w.State())
	in.t.log.Info("released the log", zap.Bool("drained", in.drained()))
	return nil
}

// drain waits until the sinks are done, and shows meanwhile that the owner lives: it may take longer than others
// wait for a sign of life.
func (in *ingest) drain(ctx context.Context) error {
	p := in.t.p.o.Periods
	enough := time.NewTimer(p.Shutdown * 4 / 5)
	defer enough.Stop()
	tick, mark, beat := time.NewTicker(drainTick), time.NewTicker(p.Mark), time.NewTicker(p.Beat)
	defer tick.Stop()
	defer mark.Stop()
	defer beat.Stop()
	for !in.drained() {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-enough.C:
			in.t.log.Warn("the log is not drained in time; the rest is applied after the next start")
			return nil
		case <-tick.C:
		case <-mark.C:
			err = in.marks(ctx)
		case <-beat.C:
			err = in.beat(ctx)
		case f := <-in.findings:
			err = in.storeFinding(ctx, f)
		}
		if err = in.tolerateFull(err); err != nil {
			return err
		}
	}
	return nil
}

// drainTick is how often the drain looks whether it is done.
const drainTick = 20 * time.Millisecond

func (in *ingest) drained() bool {
	for _, a := range in.sinks {
		if !a.Drained() {
			return false
		}
	}
	return true
}
