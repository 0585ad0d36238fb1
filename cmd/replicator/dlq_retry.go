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
		Long: `retry applies the changes of dead letters, each at the version that it has: what an item became since then is
not touched. The letters of one item are applied in version order, up to the first that is refused; with ID, those of
that letter's item. A letter that was applied is deleted; one that is refused again stays, with one more attempt. Exit 4
then.

A change that takes away what it knows of the item's old image is applied only behind all earlier ones: where one of
those was dropped, the letter is refused. Pause the table meanwhile, so that no new letter of the item comes in between.
Letters of the archive go there; a directory of archive files has room for one process, so stop the daemon before.`,
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
	var first error // the tables do not wait for each other
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
		a.print("%d applied, %d refused again, %d left behind those.", r.Applied, r.Refused, r.Left)
		for _, reason := range r.Reasons {
			a.print("  %s", reason)
		}
	}
	if r.Refused > 0 {
		return exit.Silent(exit.CodeDifferences)
	}
	return nil
}
