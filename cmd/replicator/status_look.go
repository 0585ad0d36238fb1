package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/applied"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// looker folds the logs of the tables.
type looker struct {
	cfg    *config.Config
	tables []config.Table
	src    *source.Source   // for its clock; nil: ours
	q      *queue.Queue     // nil: not connected
	daemon *pipeline.Status // what the daemon of this configuration says; nil: nothing
}

func (l *looker) close() {
	if l.q != nil {
		l.q.Close()
		l.q = nil
	}
}

func (l *looker) now(ctx context.Context) (pipeline.Status, []applied.Seen, error) {
	var statuses []pipeline.TableStatus
	var all []applied.Seen
	for _, t := range l.tables {
		st, s, err := l.table(ctx, t)
		if err != nil {
			return pipeline.Status{}, nil, err
		}
		statuses, all = append(statuses, st), append(all, s)
	}
	status := pipeline.Summarize(l.cfg.Pipeline, statuses)
	if l.daemon != nil {
		status.Fail(l.daemon.Failing)
	}
	return status, all, nil
}

func (l *looker) table(ctx context.Context, t config.Table) (pipeline.TableStatus, applied.Seen, error) {
	known := l.carried(t.Source)
	x := pipeline.Seen{Source: t.Source, Target: t.Target, State: checkpoint.NewState(), Now: serviceTime(l.src).UnixMilli(),
		ClaimTTL: time.Duration(l.cfg.Testing.ClaimTTL), Retry: time.Duration(l.cfg.Testing.RetryHalted), Late: lateAfter(l.cfg), Carried: known != nil}
	log, err := l.q.Log(ctx, t.Source)
	switch {
	case errors.Is(err, queue.ErrNoLog) && known != nil:
		return *known, applied.Seen{State: x.State}, nil
	case errors.Is(err, queue.ErrNoLog):
		st := pipeline.StatusOf(x)
		st.Reasons = []string{"no log yet: no replicator has got as far as to make one; if one runs, its /readyz says why"}
		return st, applied.Seen{State: x.State}, nil
	case err != nil:
		return pipeline.TableStatus{}, applied.Seen{}, exit.Environment(fmt.Errorf("open log of %s: %w", t.Source, err), "see `replicator check`")
	}
	err = l.measure(ctx, log, &x)
	if damage := (*queue.DamageError)(nil); errors.As(err, &damage) { // its state cannot be known; the other tables' can
		x.State = checkpoint.NewState()
		st := pipeline.StatusOf(x)
		st.State, st.Halt, st.Code = "halted", damage.Error(), "log_damaged"
		st.Reasons = []string{"halted: " + st.Halt}
		return st, applied.Seen{State: x.State}, nil
	}
	if err != nil {
		return pipeline.TableStatus{}, applied.Seen{}, fmt.Errorf("look at log of %s: %w", t.Source, err)
	}
	st := pipeline.StatusOf(x)
	if known != nil && known.State == "halted" && st.Halt == "" {
		st.State, st.Halt, st.Code = known.State, known.Halt, known.Code
		st.Reasons = append([]string{"halted: " + known.Halt}, st.Reasons...)
	}
	return st, applied.Seen{Log: log, State: x.State}, nil
}

// measure asks the log for what a status is made of.
func (l *looker) measure(ctx context.Context, log *queue.Log, x *pipeline.Seen) (err error) {
	if x.State, err = log.Fold(ctx); err != nil {
		return err
	}
	if x.Pressure, err = log.Pressure(ctx); err != nil {
		return fmt.Errorf("measure it: %w", err)
	}
	letters, err := log.ExistingLetters(ctx)
	if err != nil {
		return fmt.Errorf("open dead letters: %w", err)
	}
	if letters == nil {
		return nil
	}
	if x.Letters, err = letters.Count(ctx); err != nil {
		return fmt.Errorf("count dead letters: %w", err)
	}
	return nil
}

// carried is what the daemon says of a table, unless it only stands by for it.
func (l *looker) carried(table string) *pipeline.TableStatus {
	if l.daemon == nil {
		return nil
	}
	for i := range l.daemon.Tables {
		if t := &l.daemon.Tables[i]; t.Source == table && t.State != pipeline.StandBy {
			return t
		}
	}
	return nil
}

// statusPatience is how long a status without --timeout is tried again: an election takes a few seconds.
const statusPatience = 15 * time.Second

// statusNow looks once. What may pass, such as an election of the queue's servers or a slow reader's own overflow, is
// tried again; when the queue stays away, what the daemon says has to do.
func (a *app) statusNow(ctx context.Context, l *looker) (pipeline.Status, error) {
	defer l.close()
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, statusPatience)
		defer cancel()
	}
	l.daemon = askDaemon(ctx, l.cfg)
	for {
		status, err := a.lookTwice(ctx, l)
		if err == nil {
			return status, nil
		}
		l.close()
		if !mayPass(err) || !pauseFor(ctx, statusPeriod) {
			if l.daemon != nil {
				fmt.Fprintf(a.errs, "%s: the logs cannot be read, so this is what the daemon says: %v\n", a.path, err)
				return *l.daemon, nil
			}
			return status, err
		}
	}
}

// lookTwice looks at the logs and, where a table is late, once more: Rule 10, what is behind and moves is catching up.
func (a *app) lookTwice(ctx context.Context, l *looker) (status pipeline.Status, err error) {
	if l.q == nil {
		if l.q, err = a.client(ctx, l.cfg); err != nil {
			return status, err
		}
	}
	status, before, err := l.now(ctx)
	if err != nil || !slices.ContainsFunc(status.Tables, pipeline.TableStatus.Late) || !pauseFor(ctx, 2*time.Duration(l.cfg.Testing.MarkInterval)) {
		return status, err
	}
	again, after, err := l.now(ctx)
	if err != nil {
		return status, err
	}
	for i := range again.Tables {
		again.Tables[i].Moved(before[i].State, after[i].State)
	}
	status = pipeline.Summarize(l.cfg.Pipeline, again.Tables)
	status.Fail(again.Failing)
	return status, nil
}

// mayPass tells whether looking again may do better.
func mayPass(err error) bool {
	return queue.Classify(err) == failure.Transient || errors.Is(err, queue.ErrGap) || errors.Is(err, queue.ErrChain) || errors.Is(err, context.DeadlineExceeded)
}

// pauseFor waits; false when ctx ends first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
