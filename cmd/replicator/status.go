package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/applied"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
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
	exit    bool
	wait    string
	timeout time.Duration
}

func (a *app) statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what is in Bigtable, what is not, and why",
		Long: `status reads the tables' logs, so it needs no running daemon and disturbs none. Where a daemon answers at
admin.listen, it adds what only that one knows: which services fail, and why a table has not started.

--wait applied=now returns when everything that was written before the call is in Bigtable: each shard of a complete
listing begun after the call has shown, by a later empty page or a record past it, that nothing older is left, and every
sink has passed it. With a time (RFC 3339) it waits for what was written before that time.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.status(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.table, "table", "", "only this source table")
	f.BoolVar(&o.watch, "watch", false, "print again and again, until interrupted")
	f.BoolVar(&o.exit, "exit-code", false, "exit with 1 when the pipeline is not ready")
	f.StringVar(&o.wait, "wait", "", "applied=now, or applied=TIME (RFC 3339)")
	f.DurationVar(&o.timeout, "timeout", 0, "give up waiting after this long, with exit code 1 (default: never; without --wait, what may pass is tried again for 15s)")
	cmd.MarkFlagsMutuallyExclusive("watch", "wait")
	cmd.MarkFlagsMutuallyExclusive("watch", "exit-code")
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
	var status pipeline.Status
	switch {
	case o.wait != "":
		status, err = a.waitFor(ctx, look, target)
	case o.watch:
		return a.watch(ctx, look)
	default:
		status, err = a.statusNow(ctx, look)
	}
	if err != nil {
		return err
	}
	if err := a.printStatus(status); err != nil {
		return err
	}
	if o.exit && !status.Ready {
		return exit.Silent(exit.CodeRuntime)
	}
	return nil
}

// waitTarget reads the argument of --wait; zero means now.
func waitTarget(text string) (time.Time, error) {
	if text == "" || text == "applied=now" {
		return time.Time{}, nil
	}
	value, ok := strings.CutPrefix(text, "applied=")
	t, err := time.Parse(time.RFC3339, value)
	if !ok || err != nil {
		return t, exit.Usage("applied=now, or a time such as applied=2026-11-21T14:00:00Z", "%q is not something to wait for", text)
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

// watch prints the status every second until the context ends.
func (a *app) watch(ctx context.Context, l *looker) error {
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	for {
		status, err := a.statusNow(ctx, l)
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

// waitFor returns the status when everything before target is applied.
func (a *app) waitFor(ctx context.Context, l *looker, target time.Time) (pipeline.Status, error) {
	status, met, err := a.await(ctx, l, target)
	if err == nil && !met {
		err = a.gaveUp(ctx, l, status)
	}
	return status, err
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

// lookOnce connects where that is necessary, and looks. Errors that may pass are not returned.
func (a *app) lookOnce(ctx context.Context, l *looker, w *applied.Wait) (status pipeline.Status, met bool, err error) {
	if l.q == nil {
		if l.q, err = a.daemon(ctx, l.cfg); err != nil {
			if _, limited := ctx.Deadline(); limited && mayPass(err) {
				err = nil // the servers elect, or are away: there is time to try again
			}
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
	case mayPass(err) || once.Err() != nil:
		l.close() // the daemon went away, or a reader overflowed: look anew
		err = nil
	}
	return status, false, err
}

func (a *app) gaveUp(ctx context.Context, l *looker, last pipeline.Status) error {
	if daemon := askDaemon(context.WithoutCancel(ctx), l.cfg); daemon != nil {
		last.Fail(daemon.Failing)
	}
	if last.Schema > 0 {
		if err := a.printStatus(last); err != nil {
			return err
		}
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("wait: %w", ctx.Err())
	}
	if last.Schema == 0 {
		return &exit.Error{Code: exit.CodeRuntime, Err: errors.New("no daemon was seen in time"), Hint: "start `replicator run`"}
	}
	hint := "the tables go on by themselves; wait longer, or look at source_lag_s and applied_lag_s"
	if len(last.Reasons) > 0 {
		hint = "the reasons are in the status above; docs/operations.md says what to do about each"
	}
	return &exit.Error{Code: exit.CodeRuntime, Err: errors.New("not everything was applied in time"), Hint: hint}
}
