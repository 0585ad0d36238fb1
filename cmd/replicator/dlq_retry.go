package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/retry"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// dlqRetryCommand returns the command `replicator dlq retry`.
func (a *app) dlqRetryCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry (ID | --all)",
		Short: "Apply dead letters again",
		Long: `retry applies the changes of dead letters, each at its own version: newer changes of the item are not touched.
The letters of one item are applied in version order, up to the first that is refused; with ID, those of that letter's
item. A letter that was applied is deleted; one that is refused again stays, with one more attempt, and the exit code
is 4.

A change that deletes cells according to the item's old image (class D, by-diff) is applied only after all earlier
changes: if one of those was dropped, the letter is refused. Pause the table meanwhile, so that no new letter of the
item is added. Letters of the archive go to the archive; only one process can write a directory of archive files, so
stop the daemon first.`,
		Args: a.args(cobra.MaximumNArgs(1)),
		RunE: a.body(func(ctx context.Context, args []string) error {
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

// retry applies the letters of one letter's item, or all when id is empty.
func (a *app) retry(ctx context.Context, id string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	clients, all, err := a.openLetters(ctx, cfg, "")
	if err != nil {
		return err
	}
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	tables, err := a.catalog(ctx, cfg, src)
	if err != nil {
		return err
	}
	retrier, err := retry.New(ctx, cfg.Pipeline, clients)
	if err != nil {
		return err
	}
	var only *deadletter.Letter
	if id != "" {
		t, letter, err := findLetter(ctx, all, id)
		if err != nil {
			return err
		}
		all, only = []tableLetters{t}, letter
	}
	var first error // an error of one table does not stop the others
	for _, t := range all {
		letters := retry.Letters{Store: t.Store, LogCreated: t.logCreated, Only: only}
		if err := retrier.Table(ctx, tables.Table(t.source), letters); err != nil && first == nil {
			first = err
		}
	}
	err = a.printRetried(&retrier.Result)
	if first != nil {
		return first
	}
	return err
}

// printRetried prints what became of the letters.
func (a *app) printRetried(r *retry.Result) error {
	if a.json {
		counts := map[string]any{"schema": schema, "applied": r.Applied, "refused": r.Refused, "left": r.Left}
		if err := a.printJSON(counts); err != nil {
			return err
		}
	} else {
		a.print("%d applied, %d refused again, %d not tried because an earlier one was refused.",
			r.Applied, r.Refused, r.Left)
		for _, reason := range r.Reasons {
			a.print("  %s", reason)
		}
	}
	if r.Refused > 0 {
		return exit.Silent(exit.CodeDifferences)
	}
	return nil
}
