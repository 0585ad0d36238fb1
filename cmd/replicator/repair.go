package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// repairCommand returns the command `replicator repair`.
func repairCommand(a *cli.App) *cobra.Command {
	var o audit.RepairOptions
	var yes bool
	cmd := &cobra.Command{
		Use:   "repair (--from FILE | --keys FILE|- [--table NAME]) [--dry-run] [--delete-foreign --yes]",
		Short: "Make the rows of single items true again, and say what is true afterwards",
		Long: `repair takes the differences that verify --differences wrote, or a file of keys with one JSON object per line:
plain as in {"pk":"hats","n":12}, in DynamoDB's typed notation, or whole items. Run it with --dry-run first: it says how
many items and rows would be looked at, and changes nothing.

The replicator that owns the table reads each item strongly and makes its rows true; the stream runs on. Then repair
reads both sides again and says what is true: repaired, hot (a newer write keeps the difference until the time that is
named), refused, or unproven.

With --delete-foreign --yes, cells that belong to no item are deleted, column by column, where the differences name
them, where no item may own them by now, and where they are older than the command. Rows of other pipelines and families
outside of the mappings are never touched.

Exit 4: something is hot, refused, unproven, still different or not deleted. Repeating the command is safe.`,
		Args: a.Args(cobra.NoArgs),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return runRepair(ctx, a, o, yes) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.From, "from", "", "`FILE` of differences, as verify --differences writes it")
	f.StringVar(&o.Keys, "keys", "", "file with the keys of items, - for stdin")
	f.StringVar(&o.Table, "table", "", "source table of the keys (default: the only one)")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would be looked at, and change nothing")
	f.BoolVar(&o.DeleteForeign, "delete-foreign", false, "delete cells that belong to no item")
	f.BoolVar(&yes, "yes", false, "with --delete-foreign: do not ask")
	cmd.MarkFlagsOneRequired("from", "keys")
	cmd.MarkFlagsMutuallyExclusive("from", "keys")
	cmd.MarkFlagsMutuallyExclusive("from", "table")
	cmd.MarkFlagsMutuallyExclusive("keys", "delete-foreign")
	return cmd
}

func runRepair(ctx context.Context, a *cli.App, o audit.RepairOptions, yes bool) error {
	if o.DeleteForeign && !o.DryRun && !yes && !a.Confirmed() {
		return failure.Usagef("look with --dry-run, then repeat it with --yes",
			"nothing was changed: cells are deleted for good")
	}
	cfg, err := a.Replicated(ctx, o.Table)
	if err != nil {
		return err
	}
	if o.Keys != "" {
		if o.Table, err = onlyTable(a, cfg, o.Table); err != nil {
			return err
		}
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	tables, err := a.Catalog(ctx, cfg, src, o.Table)
	if err != nil {
		return err
	}
	r := audit.Repairer{
		RepairOptions: o, Catalog: tables, Stdin: os.Stdin,
		OpenPair: func(ctx context.Context, table string) (*pair.Pair, error) {
			return pair.Open(ctx, cfg, clients, tables, table)
		},
		Requester: func(table string) *control.Requester { return a.Requester(cfg, clients, table) },
	}
	result, err := r.Run(ctx)
	if err != nil {
		return err
	}
	result.Schema = cli.Schema
	if a.JSON {
		err = a.PrintJSON(result)
	} else {
		a.Print("%s", render.Repaired(result))
	}
	switch {
	case err != nil:
		return err
	case o.DryRun:
		if !a.JSON {
			a.Print("Nothing was changed. Next: the same command without --dry-run.")
		}
		return nil
	case !result.Done():
		return failure.With(failure.Different,
			"repeat the command when hot items have cooled down; `replicator explain --key` shows what stands in the way",
			errors.New("not everything is repaired"))
	}
	return nil
}

// onlyTable returns the named source table, or the only one.
func onlyTable(a *cli.App, cfg *config.Config, name string) (string, error) {
	if name == "" && len(cfg.Tables) == 1 {
		return cfg.Tables[0].Source, nil
	}
	if name == "" {
		return "", failure.Usagef("--table NAME", "%s has %d tables: which one?", a.ConfigPath, len(cfg.Tables))
	}
	_, err := catalog.Select(cfg, name)
	return name, err
}
