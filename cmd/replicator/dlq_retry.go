package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/ask"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/letters"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// dlqRetryCommand returns the command `replicator dlq retry`.
func (a *app) dlqRetryCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry (ID | --all)",
		Short: "Apply dead letters again",
		Long: `retry asks the replicator that owns the table to try dead letters again, and waits until that is done; with ID,
those of that letter's item. The item is read and its rows are made true at a version a minute below the reading, which
makes earlier letters needless; letters of the last minute, and those that write what outlives their item, are applied
at their own versions, in order, up to the first that is refused. Letters of the archive go to the archive,
and those of archive.subject are published as they are.

A letter that was applied or is needless is deleted; one that is refused again stays, with one more attempt, and the
exit code is 4. Without a running owner nothing is tried: only the owner writes rows.`,
		Args: a.Args(cobra.MaximumNArgs(1)),
		RunE: a.Body(func(ctx context.Context, args []string) error {
			if all == (len(args) == 1) {
				return exit.Usage("`replicator dlq list` shows the ids", "retry needs one ID, or --all")
			}
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			return a.retry(ctx, id)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters, oldest first")
	return cmd
}

// retry has the letters of one letter's item tried again, or all when id is empty.
func (a *app) retry(ctx context.Context, id string) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	clients, all, err := a.OpenLetters(ctx, cfg, "")
	if err != nil {
		return err
	}
	defer clients.Close()
	var only *deadletter.Letter
	if id != "" {
		t, letter, err := letters.Find(ctx, all, id)
		if err != nil {
			return err
		}
		all, only = []letters.Table{t}, letter
	}
	retried, err := ask.Retry(ctx, all, only, func(table string) *ask.Asker { return a.Asker(cfg, clients, table) })
	if err != nil && retried.Empty() {
		return err
	}
	line := render.Retried{Schema: schema, Applied: retried.Applied, Refused: retried.Refused, Left: retried.Waiting}
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
