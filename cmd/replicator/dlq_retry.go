package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

func (a *app) dlqRetryCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry (ID | --all)",
		Short: "Apply dead letters again, with the mapping as it is now",
		Long: `retry applies the change of a dead letter, at the version that it has: what the item became since then is not
touched. A letter that was applied is deleted; one that is refused again stays, with one more attempt. Exit 4 then.`,
		Args: a.args(cobra.MaximumNArgs(1)),
		RunE: a.body(func(ctx context.Context, args []string) error {
			if all == (len(args) == 1) {
				return usageError("`replicator dlq list` shows the ids", "retry needs one ID, or --all")
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

// retry applies one letter, or all when id is empty.
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
	r := &retrier{src: src, sink: sink, tables: map[string]*transform.Program{}}
	for _, c := range carried {
		r.tables[c.Source] = c.program
	}
	if id != "" {
		box, letter, err := findLetter(ctx, boxes, id)
		if err != nil {
			return err
		}
		if err := r.one(ctx, box, letter); err != nil {
			return err
		}
		return a.retried(r)
	}
	for _, box := range boxes {
		for letter, err := range box.letters.All(ctx) {
			if err == nil {
				err = r.one(ctx, box, letter)
			}
			if err != nil {
				return err
			}
		}
	}
	return a.retried(r)
}

// retrier applies dead letters.
type retrier struct {
	src    *source.Source
	sink   *bigtable.Client
	tables map[string]*transform.Program

	write            transform.Write
	applied, refused int
}

// one applies a letter. The error is one that keeps the next letters from being tried as well.
func (r *retrier) one(ctx context.Context, box letterBox, letter *queue.Letter) error {
	if letter.Sink != "bigtable" {
		r.refused++
		return nil // events of the archive are written by the daemon alone
	}
	c, err := letter.Change()
	if err != nil {
		return fmt.Errorf("read dead letter %s: %w", letter.ID, err)
	}
	var d change.Decoder
	err = r.tables[box.table.Source].Change(&d, c, &r.write)
	if err == nil {
		err = r.sink.Apply(ctx, box.table.Target, &r.write)
	}
	code, reason, isRefused := refusal(err)
	switch {
	case err == nil:
		r.applied++
		err = box.letters.Drop(ctx, letter.ID)
	case isRefused:
		r.refused++
		err = box.letters.Retried(ctx, letter.ID, code, reason, serviceTime(r.src).Truncate(time.Millisecond))
	default:
		return bigtableError(fmt.Errorf("apply dead letter %s: %w", letter.ID, err))
	}
	if err != nil {
		return fmt.Errorf("note outcome of dead letter %s: %w", letter.ID, err)
	}
	return nil
}

// refusal says whether mapping or Bigtable refused a change for good.
func refusal(err error) (code, reason string, is bool) {
	var byMapping *transform.Refusal
	if errors.As(err, &byMapping) {
		return byMapping.Code, byMapping.What, true
	}
	var bySink *bigtable.Rejected
	if errors.As(err, &bySink) {
		return bySink.Code, bySink.Error(), true
	}
	return "", "", false
}

func (a *app) retried(r *retrier) error {
	if a.json {
		if err := a.printJSON(map[string]any{"schema": schema, "applied": r.applied, "refused": r.refused}); err != nil {
			return err
		}
	} else {
		a.print("%d applied, %d refused again.", r.applied, r.refused)
	}
	if r.refused > 0 {
		return silent(exitDifferences)
	}
	return nil
}
