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
		Short: "Pause, resume or cancel the copy of a table's items",
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
