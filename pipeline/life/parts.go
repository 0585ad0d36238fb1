package life

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// Part works beside others until its context ends, and returns nil then. Its error ends the life.
type Part struct {
	Ends Stage // when the life is left
	Run  func(context.Context) error
	// Save runs after Run has returned nil, and before the next stage ends. Nil: there is nothing to
	// save.
	Save func(context.Context) error
}

// Stage is when a part ends after its life was left.
type Stage int

// The stages, in their order.
const (
	Copying  Stage = iota // at once
	Reading               // when the parts that copy have ended, and have saved
	Applying              // when the writer has drained the log
)

// errDrainTime ends what a life that was left has not done in time.
var errDrainTime = errors.New(
	"shutdown_timeout is over before the log was drained; the rest is applied after the next start")

// New returns a life that works until it is left, and then has the time drain to end. Run or Close
// must follow.
func New(leaving *Leaving, drain time.Duration) *Life {
	l := &Life{leaving: leaving, drain: drain}
	l.Facts, l.MayWrite = l.facts.Load, l.mayWrite
	hard, stop := context.WithCancelCause(context.Background())
	l.stop = stop
	l.parts, l.working = errgroup.WithContext(hard)
	l.applying, l.stopApplying = context.WithCancel(l.working)
	return l
}

// Close ends whatever is left of a life. It may be called again.
func (l *Life) Close() { l.stop(nil) }

// Run runs the parts, and the writer, which returns nil once reading has ended and the log is
// drained. It returns nil when a life has ended that was left.
func (l *Life) Run(writer func(context.Context) error, parts ...Part) error {
	reading, stopReading := context.WithCancel(l.applying)
	copying, stopCopying := context.WithCancel(reading)
	defer stopCopying()
	defer stopReading()
	var copies sync.WaitGroup
	for _, p := range parts {
		ctx, ended := reading, func() {}
		switch p.Ends {
		case Copying:
			copies.Add(1)
			ctx, ended = copying, copies.Done
		case Applying:
			ctx = l.applying
		}
		l.parts.Go(func() error {
			defer ended()
			if err := p.Run(ctx); err != nil || p.Save == nil {
				return err
			}
			return p.Save(reading)
		})
	}
	l.parts.Go(func() error {
		// When the writer fails, the group ends the parts that apply: if they ended before, they would
		// hide its error.
		err := writer(l.working)
		if err == nil {
			l.stopApplying()
		}
		return err
	})
	l.parts.Go(func() error {
		select {
		case <-l.applying.Done(): // it was not left
			return nil
		case <-l.leaving.Left():
		}
		l.Logger.Info("no more reading: what the log holds is applied, here or by the process that goes on with it",
			zap.Duration("at_most", l.drain))
		time.AfterFunc(l.drain, func() { l.stop(errDrainTime) })
		stopCopying()
		copies.Wait() // Rule 1: the last marks of copies are stored before the drain begins
		stopReading()
		return nil
	})
	err := l.parts.Wait()
	select {
	case <-l.leaving.Left():
		if errors.Is(err, context.Canceled) {
			return nil
		}
	default:
	}
	return err
}
