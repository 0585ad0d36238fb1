package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/applied"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// statusPeriod is how often a waiting status looks, and how often a watched one is printed.
const (
	statusPeriod = 250 * time.Millisecond
	watchPeriod  = time.Second
)

// statusOptions are the flags of status.
type statusOptions struct {
	table   string
	watch   bool
	wait    string
	timeout time.Duration
}

func (a *app) statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what is in Bigtable, what is not, and why",
		Long: `status reads the tables' logs, so it needs no running daemon and disturbs none.

--wait applied=now returns when everything that was written before the call is in Bigtable: each shard of a complete
listing begun after the call has shown, by a later empty page or a record past it, that nothing older is left, and every
sink has passed it. With a time (RFC 3339) it waits for what was written before that time.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.status(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.table, "table", "", "only this source table")
	f.BoolVar(&o.watch, "watch", false, "print again and again, until interrupted")
	f.StringVar(&o.wait, "wait", "", "applied=now, or applied=TIME (RFC 3339)")
	f.DurationVar(&o.timeout, "timeout", 0, "give up waiting after this long, with exit code 1 (default: never)")
	cmd.MarkFlagsMutuallyExclusive("watch", "wait")
	return cmd
}

func (a *app) status(ctx context.Context, o statusOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	tables, err := selected(cfg, o.table)
	if err != nil {
		return err
	}
	target, err := waitTarget(o.wait)
	if err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	src, stop := a.clock(ctx, cfg, tables[0].Source, o.wait != "")
	defer stop()
	look := &looker{cfg: cfg, tables: tables, src: src}
	if o.wait != "" {
		return a.waitFor(ctx, look, target)
	}
	if look.q, err = a.client(ctx, cfg); err != nil {
		return err
	}
	defer look.close()
	if o.watch {
		return a.watch(ctx, look)
	}
	status, _, err := look.now(ctx)
	if err != nil {
		return err
	}
	return a.printStatus(status)
}

// waitTarget reads the argument of --wait; zero means now.
func waitTarget(text string) (time.Time, error) {
	if text == "" || text == "applied=now" {
		return time.Time{}, nil
	}
	value, ok := strings.CutPrefix(text, "applied=")
	t, err := time.Parse(time.RFC3339, value)
	if !ok || err != nil {
		return t, usageError("applied=now, or a time such as applied=2026-11-21T14:00:00Z", "%q is nothing to wait for", text)
	}
	return t, nil
}

// clock asks DynamoDB what time it is, which "now" is measured by. Without an answer our own clock has to do.
func (a *app) clock(ctx context.Context, cfg *config.Config, table string, wanted bool) (*source.Source, func()) {
	if !wanted {
		return nil, func() {}
	}
	src, err := a.source(ctx, cfg)
	if err != nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := src.Table(ctx, table); err != nil {
		if _, heard := src.Now(); !heard {
			fmt.Fprintf(a.errs, "%s: DynamoDB cannot be asked for the time, so \"now\" is this machine's: %v\n", a.path, err)
		}
	}
	return src, src.Close
}

// looker folds the logs of the tables.
type looker struct {
	cfg    *config.Config
	tables []config.Table
	src    *source.Source // for its clock; nil: ours
	q      *queue.Queue   // nil: not connected
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
	return pipeline.Summarize(l.cfg.Pipeline, statuses), all, nil
}

func (l *looker) table(ctx context.Context, t config.Table) (pipeline.TableStatus, applied.Seen, error) {
	x := pipeline.Seen{Source: t.Source, Target: t.Target, State: checkpoint.NewState(), Now: serviceTime(l.src).UnixMilli(),
		ClaimTTL: time.Duration(l.cfg.Testing.ClaimTTL)}
	log, err := l.q.Log(ctx, t.Source)
	if errors.Is(err, queue.ErrNoLog) {
		st := pipeline.StatusOf(x)
		st.Reasons = []string{"no log yet: the replicator has not run"}
		return st, applied.Seen{State: x.State}, nil
	}
	if err != nil {
		return pipeline.TableStatus{}, applied.Seen{}, surroundings(fmt.Errorf("open log of %s: %w", t.Source, err), "see `replicator check`")
	}
	fail := func(what string, err error) (pipeline.TableStatus, applied.Seen, error) {
		return pipeline.TableStatus{}, applied.Seen{}, fmt.Errorf("%s of %s: %w", what, t.Source, err)
	}
	if x.State, err = log.Fold(ctx); err != nil {
		return fail("fold log", err)
	}
	if x.Pressure, err = log.Pressure(ctx); err != nil {
		return fail("measure log", err)
	}
	letters, err := log.Letters(ctx)
	if err != nil {
		return fail("open dead letters", err)
	}
	if x.Letters, err = letters.Count(ctx); err != nil {
		return fail("count dead letters", err)
	}
	return pipeline.StatusOf(x), applied.Seen{Log: log, State: x.State}, nil
}

// watch prints the status every second until the context ends.
func (a *app) watch(ctx context.Context, l *looker) error {
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	for {
		status, _, err := l.now(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if a.screen() {
			fmt.Fprint(a.out, "\x1b[H\x1b[2J")
		}
		if err := a.printStatus(status); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// waitFor prints the status when everything before target is applied.
func (a *app) waitFor(ctx context.Context, l *looker, target time.Time) error {
	status, met, err := a.await(ctx, l, target)
	switch {
	case err != nil:
		return err
	case !met:
		return a.gaveUp(ctx, status)
	default:
		return a.printStatus(status)
	}
}

// await looks until everything before target is applied, or ctx ends. The daemon may start, end and start again
// meanwhile.
func (a *app) await(ctx context.Context, l *looker, target time.Time) (last pipeline.Status, met bool, err error) {
	defer l.close()
	if target.IsZero() {
		target = serviceTime(l.src).Add(time.Second) // DynamoDB tells whole seconds, cut off
	}
	w := applied.New(target, len(l.tables))
	tick := time.NewTicker(statusPeriod)
	defer tick.Stop()
	for {
		status, met, err := a.lookOnce(ctx, l, w)
		switch {
		case met:
			return status, true, nil
		case err == nil && status.Schema > 0:
			last = status
		case err != nil && ctx.Err() == nil:
			return last, false, err
		}
		select {
		case <-ctx.Done():
			return last, false, nil
		case <-tick.C:
		}
	}
}

// lookOnce connects where that is necessary, and looks. An error that may pass is none.
func (a *app) lookOnce(ctx context.Context, l *looker, w *applied.Wait) (status pipeline.Status, met bool, err error) {
	if l.q == nil {
		if l.q, err = a.daemon(ctx, l.cfg); err != nil {
			return status, false, err
		}
	}
	once, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	status, all, err := l.now(once)
	switch {
	case err == nil:
		if w.Met(all) {
			return status, true, nil
		}
		w.Nudge(all)
	case queue.Transient(err) || once.Err() != nil:
		l.close() // the daemon went away: find the next one
		err = nil
	}
	return status, false, err
}

func (a *app) gaveUp(ctx context.Context, last pipeline.Status) error {
	if last.Schema > 0 {
		if err := a.printStatus(last); err != nil {
			return err
		}
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("wait: %w", ctx.Err())
	}
	if last.Schema == 0 {
		return &ExitError{Code: exitRuntime, Err: errors.New("no daemon was seen in time"), Hint: "start `replicator run`"}
	}
	hint := "the tables go on by themselves; wait longer, or look at source_lag_s and applied_lag_s"
	if len(last.Reasons) > 0 {
		hint = strings.Join(last.Reasons, "; ")
	}
	return &ExitError{Code: exitRuntime, Err: errors.New("not everything was applied in time"), Hint: hint}
}
