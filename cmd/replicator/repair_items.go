package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/export"
)

// repairItems has single items repaired.
func (a *app) repairItems(ctx context.Context, p *repairPlan, yes bool) error {
	o := p.items
	if o.DeleteForeign && !o.DryRun && !yes && !a.Confirmed() {
		return failure.Usagef("look with --dry-run, then repeat it with --yes",
			"nothing was changed: cells are deleted for good")
	}
	cfg, err := a.Replicated(ctx, o.Table)
	if err != nil {
		return err
	}
	if o.From == "" {
		if o.Table, err = onlyTable(a.App, cfg, o.Table); err != nil {
			return err
		}
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	r, err := a.repairer(ctx, cfg, clients, o)
	if err != nil {
		return err
	}
	result, err := r.Run(ctx)
	if err != nil {
		return err
	}
	result.Schema = schema
	switch {
	case o.DryRun:
		return a.printWould(result)
	case p.alias:
		return a.printResynced(p, o.Table, result)
	}
	if err := a.printRepaired(o, result); err != nil {
		return err
	}
	if p.wait && !result.Done() {
		return failure.With(failure.Different,
			"repeat the command when hot items have cooled down; `replicator explain --key` shows what stands in the way",
			errors.New("not everything is repaired"))
	}
	return nil
}

// repairer returns what repairs single items.
func (a *app) repairer(
	ctx context.Context, cfg *config.Config, clients *clients.Clients, o audit.RepairOptions,
) (*audit.Repairer, error) {
	src, err := clients.Source(ctx)
	if err != nil {
		return nil, err
	}
	tables, err := a.Catalog(ctx, cfg, src, o.Table)
	if err != nil {
		return nil, err
	}
	return &audit.Repairer{
		RepairOptions: o, Catalog: tables, Stdin: os.Stdin,
		OpenPair: func(ctx context.Context, table string) (*pair.Pair, error) {
			return pair.Open(ctx, cfg, clients, tables, table)
		},
		Requester: func(table string) *control.Requester { return a.Requester(cfg, clients, table) },
		OpenExport: func(ctx context.Context, t *catalog.Table) (*export.Export, error) {
			return a.openChanged(ctx, o.Export, export.Want{TableID: t.Info.ID, Source: src, Scratch: cfg.Scratch})
		},
	}, nil
}

// openChanged opens an incremental export of a table, and warns on stderr where it may lack items.
func (a *app) openChanged(ctx context.Context, url string, want export.Want) (*export.Export, error) {
	e, err := control.OpenChanged(ctx, url, want)
	if err == nil && e.Wholeness != export.Whole {
		fmt.Fprintf(a.Errs, "DynamoDB cannot be asked whether the export is whole (%s): if it was made with a filter, "+
			"items that changed are not resynced.\n", e.Unasked)
	}
	return e, err
}

// printRepaired prints what a repair of single items did.
func (a *app) printRepaired(o audit.RepairOptions, result *audit.Repaired) error {
	switch {
	case !a.JSON:
		a.Print("%s", render.Repaired(result))
		return nil
	case o.From != "":
		return a.PrintJSON(result)
	}
	return a.PrintJSON(render.RepairOfItems(o.Table, result))
}

// printResynced prints what resync --keys and --from-export asked for, or what became of it. Items
// that are not equal after it are exit code 4.
func (a *app) printResynced(p *repairPlan, table string, result *audit.Repaired) error {
	done := &control.RequestTotal{} // of a file without a key
	if len(result.Tables) > 0 {
		done = result.Tables[0].Asked
	}
	r := render.ResyncedItems(schema, table, done)
	if !p.wait {
		r.Requests = done.IDs
	}
	switch {
	case a.JSON:
		if err := a.PrintJSON(r); err != nil {
			return err
		}
	case !p.wait:
		items, requests := render.Count(int(done.Items), "item"), render.Count(len(done.IDs), "request")
		a.Print("%s of %s asked for: %s.", items, table, requests)
	default:
		a.Printed = true
		r.Print(a.Out)
		r.Refused(a.Out, done.Notes)
	}
	if r.Open() > 0 {
		return failure.Reported(failure.Different)
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
