package archiving

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
)

// sinkError is an error of one sink of the archive.
type sinkError struct {
	sink string
	err  error
}

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// retried runs a sink until ctx ends. Its own trouble ends no other sink: it is tried again, and is
// halted where an operator must act.
func (l *life) retried(ctx context.Context, sink string, run func(context.Context) error) error {
	var failing time.Time                                               // since when; zero: the last run worked
	var said bool                                                       // whether the halt is in the process's log
	retries := l.a.o.Metrics.retries.WithLabelValues(l.a.o.Table, sink) // from zero on
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		before := l.a.successes(sink)
		err := run(ctx)
		own := (*sinkError)(nil)
		if ctx.Err() != nil || !errors.As(err, &own) {
			return err
		}
		if failing.IsZero() || l.a.successes(sink) != before {
			failing, pause, said = time.Now(), firstPause, false
		}
		code, reason := explain(sink, own.err)
		if code == "" && time.Since(failing) >= l.a.o.Retry {
			code = outcome.CodeAway
		}
		l.a.note(func(s *Status) { s.trouble(sink, reason) })
		retries.Inc()
		wait, log := pause, l.a.o.Logger.Warn
		if code != "" {
			wait = l.a.o.Retry
			if err := l.a.halt(ctx, sink, code, reason); err != nil {
				return err
			}
			if !said { // an operator must act
				log, said = l.a.o.Logger.Error, true
			}
		}
		log("a sink of the archive fails: it is tried again", zap.String("sink", sink),
			zap.String("code", code), zap.String("reason", reason), zap.Duration("retry_in", wait))
		if err := failure.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// explain returns why a sink is halted, for people, and the halt's code: "" where it may just be
// tried again.
func explain(sink string, err error) (code, reason string) {
	conflict := (*ConflictError)(nil)
	class := bucket.Classify(err)
	reason = err.Error()
	if errors.As(err, &conflict) {
		return "archive_conflict", reason
	}
	if halt := (*outcome.HaltError)(nil); errors.As(err, &halt) { // on_reject: halt
		return halt.Code, halt.Reason
	}
	if sink == SinkSubject {
		class = conn.Classify(err)
	} else if hint := bucket.Hint(err); hint != "" {
		reason += "; " + hint
	}
	switch class {
	case failure.Transient, failure.Throttled, failure.Canceled:
		return "", reason
	}
	return "archive_" + class.String(), reason
}

// halt notes in the table's log that a sink is halted.
func (a *Archiver) halt(ctx context.Context, sink, code, reason string) error {
	a.mu.Lock()
	a.halted[sink] = true
	a.mu.Unlock()
	return a.o.Halt(ctx, sink, code, reason)
}

// clear notes that a sink works.
func (a *Archiver) clear(ctx context.Context, sink string) {
	a.mu.Lock()
	was := a.halted[sink]
	delete(a.halted, sink)
	a.status.trouble(sink, "")
	a.worked[sink]++
	a.mu.Unlock()
	if was {
		_ = a.o.Clear(ctx, sink) // the next life does it again
	}
}

// successes returns how often a sink has worked.
func (a *Archiver) successes(sink string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.worked[sink]
}
