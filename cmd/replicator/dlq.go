package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// dlqCommands has a method for each command.
type dlqCommands struct{ *cli.App }

// dlqCommand returns the command `replicator dlq`.
func dlqCommand(app *cli.App) *cobra.Command {
	a := &dlqCommands{app}
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "List, show, retry and drop dead letters",
		Long: `A dead letter is a change that the mapping, Bigtable or the archive refused for good. It is kept with its
reason until it is applied (retry) or dropped on purpose (drop). A table is not ready while any is open.`,
		Args: a.NoArgs(),
	}
	cmd.AddCommand(a.listCommand(), a.showCommand(), a.retryCommand(), a.dropCommand())
	return cmd
}

// listCommand returns the command `replicator dlq list`.
func (a *dlqCommands) listCommand() *cobra.Command {
	var some control.LetterFilter
	cmd := &cobra.Command{
		Use: "list", Short: "List the dead letters, oldest first", Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			cfg, err := a.Config(ctx)
			if err != nil {
				return err
			}
			clients, all, err := a.OpenLetters(ctx, cfg, some.Table)
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
					if !some.Match(l) {
						continue
					}
					n++
					if a.JSON {
						if err := a.PrintJSON(l.Summary(false)); err != nil {
							return err
						}
						continue
					}
					if n == 1 {
						fmt.Fprintln(w, "ID\tTABLE\tSINK\tSINCE\tRETRIED\tCODE\tREASON")
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", l.ID, l.Table, l.Sink, render.Time(l.FirstSeen),
						l.Attempts, l.Code, l.Reason)
				}
			}
			a.Printed = true // an empty list is an answer
			if n == 0 && !a.JSON {
				a.Print("No dead letters.")
			}
			if err := w.Flush(); err != nil || n == 0 || a.JSON {
				return err
			}
			a.Print("Next: remove the reason, then `replicator dlq retry %s`; `replicator dlq show ID --show-data` "+
				"prints an item.", retryOf(some))
			return nil
		}),
	}
	chooseLetters(cmd, &some)
	return cmd
}

// retryOf returns the flags with which dlq retry takes the letters that were listed.
func retryOf(some control.LetterFilter) string {
	var flags []string
	for name, value := range map[string]string{"code": some.Code, "sink": some.Sink, "table": some.Table} {
		if value != "" {
			flags = append(flags, "--"+name+" "+value)
		}
	}
	if len(flags) == 0 {
		return "--all"
	}
	slices.Sort(flags)
	return strings.Join(flags, " ")
}

// chooseLetters adds the flags of a filter.
func chooseLetters(cmd *cobra.Command, some *control.LetterFilter) {
	f := cmd.Flags()
	f.StringVar(&some.Table, "table", "", "only those of this source table")
	f.StringVar(&some.Code, "code", "", "only those refused for this code")
	f.StringVar(&some.Sink, "sink", "", "only those of this sink: bigtable, archive, archive.subject")
}

// chosenOnce returns an error unless dead letters are chosen in one way: by an id, by a filter, or
// all.
func chosenOnce(command string, args []string, all bool, some control.LetterFilter) error {
	ways := len(args)
	if all {
		ways++
	}
	if !some.Empty() {
		ways++
	}
	if ways != 1 {
		return failure.Usagef("`replicator dlq list` shows the ids, tables, sinks and codes",
			"%s needs one ID, or --all, or some of --table, --code and --sink", command)
	}
	return nil
}

// dropCommand returns the command `replicator dlq drop`.
func (a *dlqCommands) dropCommand() *cobra.Command {
	var yes, all bool
	var some control.LetterFilter
	cmd := &cobra.Command{
		Use:   "drop (ID | --all | --table NAME | --code CODE | --sink SINK) --yes",
		Short: "Delete dead letters for good: their changes will never be applied",
		Args:  a.AtMostOneArg("ID"),
		RunE: a.Body(func(ctx context.Context, args []string) error {
			if err := chosenOnce("drop", args, all, some); err != nil {
				return err
			}
			if !yes {
				return failure.Usagef("repeat it with --yes if the change may be lost", "drop loses a change for good")
			}
			if len(args) == 1 {
				return a.dropLetter(ctx, args[0])
			}
			return a.dropLetters(ctx, some)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that the changes are lost")
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters of all tables")
	chooseLetters(cmd, &some)
	return cmd
}

// dropLetter drops one dead letter.
func (a *dlqCommands) dropLetter(ctx context.Context, id string) error {
	clients, t, letter, err := a.FindLetter(ctx, id)
	if err != nil {
		return err
	}
	defer clients.Close()
	if err := t.Drop(ctx, letter.ID); err != nil {
		return fmt.Errorf("drop dead letter: %w", err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"schema": cli.Schema, "id": letter.ID, "table": letter.Table, "dropped": true})
	}
	a.Print("Dropped %s of %s.", letter.ID, letter.Table)
	return nil
}

// dropLetters drops the dead letters that a filter chooses, among those that are there now.
func (a *dlqCommands) dropLetters(ctx context.Context, some control.LetterFilter) error {
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	clients, all, err := a.OpenLetters(ctx, cfg, some.Table)
	if err != nil {
		return err
	}
	defer clients.Close()
	dropped := 0
	for _, t := range all {
		n, err := control.DropLetters(ctx, t, some)
		dropped += n
		if err != nil {
			return fmt.Errorf("drop dead letters of %s, after %s: %w", t.Source, render.Count(dropped, "letter"), err)
		}
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"schema": cli.Schema, "dropped": dropped})
	}
	a.Print("Dropped %s.", render.Count(dropped, "dead letter"))
	return nil
}
