package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/letters"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
)

// dlqCommand returns the command `replicator dlq`.
func (a *app) dlqCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "List, show, retry and drop dead letters",
		Long: `A dead letter is a change that the mapping, Bigtable or the archive refused for good. It is kept with its
reason until it is applied (retry) or dropped on purpose (drop). A table is not ready while any is open.`,
		Args: a.Args(cobra.NoArgs),
	}
	cmd.AddCommand(a.dlqListCommand(), a.dlqShowCommand(), a.dlqRetryCommand(), a.dlqDropCommand())
	return cmd
}

// dlqListCommand returns the command `replicator dlq list`.
func (a *app) dlqListCommand() *cobra.Command {
	var table string
	cmd := &cobra.Command{
		Use: "list", Short: "List the dead letters, oldest first", Args: a.Args(cobra.NoArgs),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			clients, all, err := a.OpenLetters(ctx, cfg, table)
			if err != nil {
				return err
			}
			defer clients.Close()
			n := 0
			w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			for _, t := range all {
				for l, err := range t.All(ctx) {
					if err != nil {
						return fmt.Errorf("list dead letters of %s: %w", t.Source, err)
					}
					n++
					if a.JSON {
						if err := a.PrintJSON(render.LetterOf(l, false)); err != nil {
							return err
						}
						continue
					}
					if n == 1 {
						fmt.Fprintln(w, "ID\tTABLE\tSINK\tSINCE\tTRIED\tCODE\tREASON")
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", l.ID, l.Table, l.Sink, l.FirstSeen.Local().Format(time.DateTime),
						l.Attempts+1, l.Code, l.Reason)
				}
			}
			a.Printed = true // an empty list is an answer
			if n == 0 && !a.JSON {
				a.Print("No dead letters.")
			}
			return w.Flush()
		}),
	}
	cmd.Flags().StringVar(&table, "table", "", "only this source table")
	return cmd
}

// dlqShowCommand returns the command `replicator dlq show`.
func (a *app) dlqShowCommand() *cobra.Command {
	var showData bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show one dead letter", Args: a.Args(cobra.ExactArgs(1)),
		RunE: a.Body(func(ctx context.Context, args []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			clients, all, err := a.OpenLetters(ctx, cfg, "")
			if err != nil {
				return err
			}
			defer clients.Close()
			_, letter, err := letters.Find(ctx, all, args[0])
			if err != nil {
				return err
			}
			line := render.LetterOf(letter, showData)
			if a.JSON {
				return a.PrintJSON(line)
			}
			a.Print("%s: %s of %s, version %d, key hash %s", line.ID, line.Op, line.Table, line.Version, line.KeyHash)
			a.Print("  refused by %s: %s (%s)", line.Sink, line.Reason, line.Code)
			a.Print("  first %s, tried %s, last %s", line.FirstSeen.Local().Format(time.DateTime),
				render.Count(line.Attempts+1, "time"), line.LastTried.Local().Format(time.DateTime))
			a.Print("  shard %s", line.Shard)
			if showData {
				a.Print("%s", line.Record)
			} else {
				a.Print("  --show-data prints the item")
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&showData, "show-data", false, "print the whole record")
	return cmd
}

// dlqDropCommand returns the command `replicator dlq drop`.
func (a *app) dlqDropCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "drop ID --yes", Short: "Delete a dead letter for good: its change will never be applied",
		Args: a.Args(cobra.ExactArgs(1)),
		RunE: a.Body(func(ctx context.Context, args []string) error {
			if !yes {
				return exit.Usage("repeat it with --yes if the change may be lost", "drop loses a change for good")
			}
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			clients, all, err := a.OpenLetters(ctx, cfg, "")
			if err != nil {
				return err
			}
			defer clients.Close()
			t, letter, err := letters.Find(ctx, all, args[0])
			if err != nil {
				return err
			}
			if err := t.Drop(ctx, letter.ID); err != nil {
				return fmt.Errorf("drop dead letter: %w", err)
			}
			if a.JSON {
				return a.PrintJSON(map[string]any{"schema": schema, "id": letter.ID, "table": letter.Table, "dropped": true})
			}
			a.Print("Dropped %s of %s.", letter.ID, letter.Table)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that the change is lost")
	return cmd
}
