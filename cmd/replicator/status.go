package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/protocol"
)

// watchPeriod is how often status --watch prints.
const watchPeriod = time.Second

// statusOptions are the flags of status.
type statusOptions struct {
	table   string
	watch   bool
	exit    bool
	cost    bool
	wait    string
	accept  []string
	timeout time.Duration
}

// statusCommand returns the command `replicator status`.
func (a *app) statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say what is in Bigtable, what is not, and why",
		Long: `status reads the tables' logs, so it needs no running daemon and disturbs none. Where a daemon answers at
admin.listen, it adds what only the daemon knows: which services fail, and why a table has not started.

--wait applied=now returns when everything that was written before the call is in Bigtable: the shards were listed
after the call, each of them then returned an empty page or a record newer than the call, and every sink has applied
what came before that; and every copy of older items is complete. With a time (RFC 3339) it waits for what was written
before that time. What was lost in a gap, is a dead letter or was written behind the fence of a cutover is not in
Bigtable: when nothing else stands before the goal, it ends with exit code 4 and names it; --accept gaps,letters
leaves out the first two. Exit code 1: --timeout came first.

--cost prints, instead, what each table costs in a month: what the daemon at admin.listen has counted in the last hour
at most, at list prices, what reading its shards costs while nothing changes, and what its size takes in Bigtable.
Nothing is computed of what was not measured.`,
		Example: `  replicator status --wait applied=now --timeout 5m
  replicator status --json --wait applied=now --accept letters
  replicator status --cost`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.status(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.table, "table", "", "only this source table")
	f.BoolVar(&o.watch, "watch", false, "print again and again, until interrupted")
	f.BoolVar(&o.exit, "exit-code", false, "exit with 1 when the pipeline is not ready")
	f.BoolVar(&o.cost, "cost", false, "print what each table costs in a month, by what the daemon has measured")
	f.StringVar(&o.wait, "wait", "", "applied=now, or applied=TIME (RFC 3339)")
	f.StringSliceVar(&o.accept, "accept", nil, "with --wait: obstacles that do not count: gaps, letters")
	f.DurationVar(&o.timeout, "timeout", 0, "give up waiting after this long, with exit code 1 "+
		"(default: never; without --wait, transient errors are retried for 15s)")
	cmd.MarkFlagsMutuallyExclusive("watch", "wait")
	cmd.MarkFlagsMutuallyExclusive("watch", "exit-code")
	cmd.MarkFlagsMutuallyExclusive("cost", "watch", "wait")
	cmd.MarkFlagsMutuallyExclusive("cost", "exit-code")
	return cmd
}

// status prints the status: now, again and again, or once everything before a moment is applied.
func (a *app) status(ctx context.Context, o statusOptions) error {
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	tables, err := catalog.Select(cfg, o.table)
	if err != nil {
		return err
	}
	target, err := waitTarget(o.wait)
	if err != nil {
		return err
	}
	accept, err := acceptOf(o.accept, o.wait != "", "--wait applied=now")
	if err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	observer := control.NewObserver(cfg, tables, clients)
	var status pipeline.Status
	switch {
	case o.wait != "":
		a.readClock(ctx, clients, tables[0].Source)
		stop := a.ShowProgress(ctx, clients, o.table)
		var reached control.Reached
		status, reached, err = a.waitFor(ctx, observer, target, *accept)
		stop()
		if reached.Blocked {
			return a.printBlocked(status, reached)
		}
	case o.watch:
		return a.watch(ctx, observer)
	default:
		status, err = a.statusNow(ctx, observer)
	}
	if err != nil {
		return err
	}
	if o.cost {
		return a.statusCost(ctx, cfg, tables, clients, status)
	}
	if err := a.printStatus(status); err != nil {
		return err
	}
	if o.exit && !status.Ready {
		return failure.Reported(failure.None)
	}
	return nil
}

// waitTarget reads the argument of --wait; the zero time means now.
func waitTarget(text string) (time.Time, error) {
	if text == "" || text == "applied=now" {
		return time.Time{}, nil
	}
	value, ok := strings.CutPrefix(text, "applied=")
	t, err := time.Parse(time.RFC3339, value)
	if !ok || err != nil {
		return t, failure.Usagef("applied=now, or a time such as applied=2026-11-21T14:00:00Z",
			"%q is not something to wait for", text)
	}
	return t, nil
}

// readClock reads the time of DynamoDB, because "now" is a time of its clock. Without an answer
// "now" is the time of this machine.
func (a *app) readClock(ctx context.Context, clients *clients.Clients, table string) {
	if err := clients.ReadClock(ctx, table); err != nil {
		fmt.Fprintf(a.Errs, "%s: DynamoDB did not return the time, so \"now\" is the time of this machine: %v\n", a.Path, err)
	}
}

// statusNow returns the status. If the logs cannot be read and the status comes from the daemon
// alone, statusNow says so on stderr.
func (a *app) statusNow(ctx context.Context, observer *control.Observer) (pipeline.Status, error) {
	status, err := observer.Status(ctx)
	if only := (*control.DaemonOnlyError)(nil); errors.As(err, &only) {
		fmt.Fprintf(a.Errs, "%s: %v\n", a.Path, only)
		err = nil
	}
	return status, err
}

// watch prints the status every second until ctx ends.
func (a *app) watch(ctx context.Context, observer *control.Observer) error {
	for {
		status, err := a.statusNow(ctx, observer)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if a.Redraws() {
			fmt.Fprint(a.Out, "\x1b[H\x1b[2J")
			render.PrintBars(a.Out, render.Steps(status, ""))
		}
		if err := a.printStatus(status); err != nil {
			return err
		}
		if failure.Pause(ctx, watchPeriod) != nil {
			return nil
		}
	}
}

// waitFor returns the status when everything from before target is in Bigtable, or when only
// obstacles are left.
func (a *app) waitFor(
	ctx context.Context, observer *control.Observer, target time.Time, accept protocol.Accept,
) (pipeline.Status, control.Reached, error) {
	status, reached, err := observer.Await(ctx, target, accept)
	if err == nil && !reached.Met && !reached.Blocked {
		err = a.waitFailed(ctx, status)
	}
	return status, reached, err
}

// printBlocked prints the last status of a wait before which only obstacles stand, and returns the
// error that names them. As JSON, the obstacles take the place of the reasons.
func (a *app) printBlocked(s pipeline.Status, reached control.Reached) error {
	if a.JSON {
		blocked := struct {
			pipeline.Status
			Reasons []control.Reason `json:"reasons"`
		}{s, reached.Reasons}
		if err := a.PrintJSON(blocked); err != nil {
			return err
		}
		return failure.Reported(failure.Different)
	}
	if err := a.printStatus(s); err != nil {
		return err
	}
	return reached.Err()
}

// acceptOf reads the values of --accept, which belongs to another flag; nil without that flag.
func acceptOf(names []string, with bool, flag string) (*protocol.Accept, error) {
	if !with && len(names) > 0 {
		return nil, failure.Usagef("give both, as in `"+flag+" --accept "+strings.Join(names, ",")+"`, or leave out --accept",
			"--accept belongs to %s", flag)
	}
	if !with {
		return nil, nil
	}
	accept := &protocol.Accept{}
	for _, name := range names {
		switch protocol.Obstacle(name) {
		case protocol.ObstacleGaps:
			accept.Gaps = true
		case protocol.ObstacleLetters:
			accept.Letters = true
		default:
			return nil, failure.Usagef("--accept gaps,letters", "%q is no obstacle that can be accepted", name)
		}
	}
	return accept, nil
}

// waitFailed prints the last status, and returns the error of a wait that timed out or was
// interrupted.
func (a *app) waitFailed(ctx context.Context, last pipeline.Status) error {
	if last.Schema > 0 {
		if err := a.printStatus(last); err != nil {
			return err
		}
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("wait: %w", ctx.Err())
	}
	if last.Schema == 0 {
		return failure.With(failure.None, "start `replicator run`", errors.New("no daemon was seen in time"))
	}
	return failure.With(failure.None, hintLate(last), errors.New("not everything was applied in time"))
}

// hintLate returns what to do when not everything was applied in time.
func hintLate(s pipeline.Status) string {
	if len(s.Reasons) > 0 {
		return "the reasons are in the status above; docs/operations.md says what to do about each"
	}
	return "the tables go on by themselves; wait longer, or look at source_lag_s and applied_lag_s"
}

// printStatus prints the status as JSON, or in words.
func (a *app) printStatus(s pipeline.Status) error {
	if a.JSON {
		return a.PrintJSON(s)
	}
	a.Printed = true
	return render.Status(a.Out, s)
}
