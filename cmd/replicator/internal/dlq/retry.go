package dlq

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/ask"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/letters"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// retryCommand returns the command `replicator dlq retry`.
func (a *commands) retryCommand() *cobra.Command {
	var all bool
	var some letters.Filter
	cmd := &cobra.Command{
		Use:   "retry (ID | --all | --table NAME | --code CODE | --sink SINK)",
		Short: "Apply dead letters again",
		Long: `retry asks the replicator that owns the table to try dead letters again, and waits until that is done: with ID
those of that letter's item, with --table, --code and --sink those of the items that have a letter of all of these.
The item is read and its rows are made true at a version a minute below the reading, which makes earlier letters
needless; letters of the last minute, and those that write what outlives their item, are applied
at their own versions, in order, up to the first that is refused. Letters of the archive go to the archive,
and those of archive.subject are published as they are.

A letter that was applied or is needless is deleted; one that is refused again stays, with one more attempt, and the
exit code is 4. Without a running owner nothing is tried: only the owner writes rows.`,
		Args: a.Args(cobra.MaximumNArgs(1)),
		RunE: a.Body(func(ctx context.Context, args []string) error {
			if err := chosenOnce("retry", args, all, some); err != nil {
				return err
			}
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			return a.retry(ctx, id, some)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters, oldest first")
	chooseLetters(cmd, &some)
	return cmd
}

// retry has the letters of one letter's item tried again, or those that a filter chooses when id is empty.
func (a *commands) retry(ctx context.Context, id string, some letters.Filter) error {
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	clients, all, err := a.OpenLetters(ctx, cfg, some.Table)
	if err != nil {
		return err
	}
	defer clients.Close()
	only := some.Match
	if id != "" {
		t, letter, err := letters.Find(ctx, all, id)
		if err != nil {
			return err
		}
		all = []letters.Table{t}
		only = func(l *deadletter.Letter) bool { return l.ID == letter.ID || l.KeyHash == letter.KeyHash }
	}
	retried, err := ask.Retry(ctx, all, only, func(table string) *ask.Asker { return a.Asker(cfg, clients, table) })
	if err != nil && retried.Empty() {
		return err
	}
	line := render.Retried{Schema: cli.Schema, Applied: retried.Applied, Refused: retried.Refused, Left: retried.Waiting}
	if a.JSON {
		err = errors.Join(err, a.PrintJSON(line))
	} else {
		a.Printed = true
		line.Print(a.Out, retried.Notes, retried.Unreadable)
	}
	if err == nil && retried.Refused > 0 {
		return exit.Silent(exit.CodeDifferences)
	}
	return err
}
