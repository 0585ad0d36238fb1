package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
)

func (a *app) dlqRetryCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry (ID | --all)",
		Short: "Apply dead letters again",
		Long: `retry applies the changes of dead letters, each at the version that it has: what an item became since then is not
touched. The letters of one item are applied in version order, up to the first that is refused; with ID, those of that
letter's item. A letter that was applied is deleted; one that is refused again stays, with one more attempt. Exit 4 then.

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
	cfg, boxes, done, err := a.letterBoxes(ctx, "")
	if err != nil {
		return err
	}
	defer done()
	src, err := a.source(ctx, cfg)
	if err != nil {
		return err
	}
	defer src.Close()
	carried, err := a.programs(ctx, cfg, src)
	if err != nil {
		return err
	}
	sink, err := a.bigtable(ctx, cfg, src)
	if err != nil {
		return err
	}
	defer sink.Close()
	r := &retrier{app: a, cfg: cfg, src: src, sink: sink}
	defer r.close()
	if id != "" {
		box, letter, err := findLetter(ctx, boxes, id)
		if err != nil {
			return err
		}
		boxes, r.only = []letterBox{box}, letter
	}
	var errs []error
	for _, box := range boxes {
		for _, c := range carried {
			if c.Source == box.table.Source {
				errs = append(errs, r.box(ctx, box, c)) // the tables do not wait for each other
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		_ = a.retried(r)
		return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
	}
	return a.retried(r)
}

func (a *app) retried(r *retrier) error {
	if a.json {
		if err := a.printJSON(map[string]any{"schema": schema, "applied": r.applied, "refused": r.refused, "left": r.left}); err != nil {
			return err
		}
	} else {
		a.print("%d applied, %d refused again, %d left behind those.", r.applied, r.refused, r.left)
		for _, why := range r.why {
			a.print("  %s", why)
		}
	}
	if r.refused > 0 {
		return exit.Silent(exit.CodeDifferences)
	}
	return nil
}
