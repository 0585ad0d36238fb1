package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/failure"
)

// copyCommand returns the command `replicator copy`.
func (a *app) copyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Pause, resume, delegate or cancel the copy of a table's items",
		Long: `A copy brings the items to Bigtable that a table held before its stream was read, beside the running stream.
These commands go through the table's log, so they hold for whichever replicator owns it, and after every restart. The
stream runs on in any case.`,
		Args: a.NoArgs(),
	}
	cmd.AddCommand(
		a.copyControlCommand(checkpoint.CopyPause, "Stop copying until resume: no more of the table is read",
			"The copy of %s is paused. What is copied stays; the table is not ready until the copy is complete."),
		a.copyControlCommand(checkpoint.CopyResume, "Go on copying, also where the copy paused itself",
			"The copy of %s goes on where it was."),
		a.copyControlCommand(checkpoint.CopyDelegate, "Let workers outside the replicator copy what is left of an export",
			"Workers may copy %s now: `replicator status` shows the command that starts them, once their order is open."),
		a.copyControlCommand(checkpoint.CopyTakeback, "End the workers, and let the replicator copy what is left",
			"The workers of %s end within two minutes, then the replicator copies what they leave."),
		a.copyControlCommand(checkpoint.CopyCancel, "End the copy for good: the rest of the table stays missing",
			"The copy of %s is cancelled. Items that were not copied are missing until they change: `gaps list` shows\n"+
				"that as a gap, and the table is not ready until `repair --table` or `repair --gaps` has copied them, or\n"+
				"`gaps clear` has waived it."),
	)
	return cmd
}

// copyControlCommand returns the command that does one thing to the copy of a table.
func (a *app) copyControlCommand(what, short, done string) *cobra.Command {
	var table string
	cmd := &cobra.Command{
		Use: what + " --table NAME", Short: short, Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			logs, clients, err := a.TableLogs(ctx, table)
			if err != nil {
				return err
			}
			defer clients.Close()
			if len(logs) == 0 || logs[0].State.Unfinished().Copy == checkpoint.CopyNone {
				return failure.With(failure.Unready, "`replicator status` shows the copies",
					fmt.Errorf("%s is not being copied", table))
			}
			l := logs[0]
			running := l.State.CopyRunning()
			if running == nil {
				return failure.With(failure.Unready, "try again in a minute",
					fmt.Errorf("the copy of %s has not begun yet", table))
			}
			if err := a.mayDelegate(what, l.Table, l.State); err != nil {
				return err
			}
			seq, err := l.Append(ctx, what+" copy", checkpoint.Control{Copy: &checkpoint.CopyOrder{ID: running.ID, Do: what}})
			if err != nil {
				return err
			}
			if c := l.State.Copy; c.ID != running.ID || c.Done() {
				return failure.With(failure.Unready, "see `replicator status`",
					fmt.Errorf("the copy of %s has ended meanwhile", table))
			}
			if a.JSON {
				return a.PrintJSON(map[string]any{
					"schema": schema, "table": l.Table, "action": "copy " + what, "copy": running.ID, "seq": seq,
				})
			}
			a.Print(done, l.Table)
			return nil
		}),
	}
	cmd.Flags().StringVar(&table, "table", "", "source table")
	cli.Must(cmd.MarkFlagRequired("table"))
	return cmd
}

// mayDelegate returns why the copy of a table cannot be delegated to workers, or taken back from
// them; nil when it can. Whether they fit the mapping shows the owner.
func (a *app) mayDelegate(what, table string, s *checkpoint.State) error {
	unready := func(hint, text string) error { return failure.With(failure.Unready, hint, fmt.Errorf(text, table)) }
	switch d := s.Delegates(s.CopyRunning()); {
	case what == checkpoint.CopyTakeback && d != checkpoint.DelegateAlready:
		return unready("`replicator status` shows who copies", "no workers copy %s")
	case what != checkpoint.CopyDelegate:
	case d == checkpoint.DelegateScan:
		return unready("the replicator goes on with it", "the copy of %s reads the table, and workers read an export")
	case d == checkpoint.DelegateAlready:
		return unready("`replicator status` shows the command that starts them", "workers copy %s already")
	case d == checkpoint.DelegatePaused:
		return unready("`replicator status` shows why; `replicator copy resume` first", "the copy of %s has paused itself")
	}
	return nil
}
