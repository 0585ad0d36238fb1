package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// recoverCommand returns the command `replicator recover`.
func (a *app) recoverCommand() *cobra.Command {
	var table string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "recover (--table NAME | --all) [--yes]",
		Short: "Begin a new life of a table whose log was lost, emptied, restored or is another's",
		Long: `recover says what it will do to each table whose log cannot go on, and for how long the table will be red. Then
it changes one row, the table's in tailrace_state: a new life begins, whose versions are above everything that was ever
written. The replicator does the rest at its next try: it leaves the old log, makes a new one, reads the stream on, and
compares the whole table with Bigtable, so that what the lost log held is written again. A table whose log can go on,
or that is already recovering, is left as it is. Where only the row is gone, and the log is whole, the row is stored
again from the log, and nothing else happens.

Of a table without a target the row is in the archive's bucket, and nothing is compared: the stream is read again from
its oldest record, and the archive drops what it has.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			if all == (table != "") {
				return failure.Usagef("`replicator recover --table NAME` or `--all`", "recover needs one table, or --all")
			}
			return a.recover(ctx, table, yes)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&table, "table", "", "source table")
	f.BoolVar(&all, "all", false, "all tables of the configuration")
	f.BoolVar(&yes, "yes", false, "do it without asking")
	return cmd
}

// recover prints what the recovery of the tables does, and begins it if that is confirmed.
func (a *app) recover(ctx context.Context, table string, yes bool) error {
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	if _, err := catalog.Select(cfg, table); err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	tables, err := a.CatalogFor(ctx, cfg, src, table)
	if err != nil {
		return err
	}
	plans, err := preflight.PlanRecoveries(ctx, cfg, clients, tables, table)
	if err != nil {
		return err
	}
	for _, p := range plans {
		fmt.Fprintln(a.Errs, p.Text())
	}
	if len(plans) == 0 {
		of := "every log"
		if len(tables.LeftOut) > 0 {
			of = "every log of a table that can be described"
		}
		fmt.Fprintf(a.Errs, "Nothing to recover: %s can go on.\n", of)
	}
	if preflight.Asks(plans) && !yes && !a.Confirmed() {
		return failure.Usagef("repeat it with --yes", "nothing was changed: recover was not confirmed")
	}
	for _, p := range plans {
		rows, err := clients.Rows(ctx, &tables.Table(p.Table).Table)
		if err != nil {
			return err
		}
		if err := p.Begin(ctx, rows); err != nil {
			if errors.Is(err, bigtable.ErrStateChanged) {
				hint := "the row was changed meanwhile: look again with `replicator recover --all`"
				return failure.With(failure.None, hint, err)
			}
			return staterow.Explain(err)
		}
		if !a.JSON && p.Restores {
			a.Print("%s has its row again. It goes on at the next try of `replicator run`; `replicator resume` tries at once.",
				p.Table)
		} else if !a.JSON && !p.Begun {
			a.Print("%s begins life %d. Once `replicator run` runs, `replicator status` shows how far it is.", p.Table, p.Life)
		}
	}
	if a.JSON {
		if plans == nil {
			plans = []*preflight.Life{} // [] in place of null
		}
		if err := a.PrintJSON(map[string]any{"schema": schema, "tables": plans}); err != nil {
			return err
		}
	}
	return a.Missed(tables, nil)
}
