package main

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// repairTables has whole tables repaired: a named one, or those with gaps.
func (a *app) repairTables(ctx context.Context, p *repairPlan) error {
	if p.over == overTable {
		if _, err := a.Replicated(ctx, p.table); err != nil {
			return err
		}
	}
	logs, clients, err := a.TableLogs(ctx, p.table)
	if err != nil {
		return err
	}
	defer clients.Close()
	orders, err := p.orders(logs)
	if err != nil {
		return err
	}
	switch {
	case p.dryRun:
		return a.wouldRepairTables(ctx, clients, orders)
	case len(orders) == 0 && a.JSON:
		return a.PrintJSON(map[string]any{"schema": schema, "healing": []string{}})
	case len(orders) == 0:
		a.Print("No gaps to heal.")
		return nil
	}
	for _, o := range orders {
		if err := o.Send(ctx); err != nil {
			return err
		}
		if err := a.printOrder(p, o); err != nil {
			return err
		}
	}
	if clients.StoreWasClosed() {
		fmt.Fprintln(a.Errs, "No replicator runs: what was asked for begins when `replicator run` is started.")
	}
	if !p.wait {
		return nil
	}
	return a.awaitOrders(ctx, clients, p, orders)
}

// orders returns the orders of a repair of whole tables.
func (p *repairPlan) orders(logs []*control.Log) ([]*control.TableOrder, error) {
	if p.over == overTable {
		return control.OrderOfTable(logs, p.table)
	}
	for _, id := range p.ids {
		if _, g := findGap(logs, id); g == nil {
			return nil, noGap(id)
		}
	}
	return control.OrdersOfGaps(logs, p.ids), nil
}

// wouldRepairTables prints which tables would be compared.
func (a *app) wouldRepairTables(ctx context.Context, clients *clients.Clients, orders []*control.TableOrder) error {
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	would := &audit.Repaired{
		Schema: schema, DryRun: true, Tables: []*audit.RepairedTable{}, Foreign: []*audit.RepairedForeign{},
	}
	for _, o := range orders {
		info, err := src.Table(ctx, o.Log.Table)
		if err != nil {
			return source.Explain(err)
		}
		would.Tables = append(would.Tables, &audit.RepairedTable{
			Source: o.Log.Table, Target: targetOf(clients, o.Log.Table), Items: info.Items, Whole: true, Gaps: o.Gaps,
		})
	}
	return a.printWould(would)
}

// printWould prints what a dry run would look at.
func (a *app) printWould(would *audit.Repaired) error {
	if a.JSON {
		return a.PrintJSON(would)
	}
	a.Print("%s", render.Repaired(would))
	a.Print("Nothing was changed. Next: the same command without --dry-run.")
	return nil
}

// printOrder prints what was asked for. A command that waits prints only lines for people: the
// result is its object of --json.
func (a *app) printOrder(p *repairPlan, o *control.TableOrder) (err error) {
	if a.JSON && p.wait {
		return nil
	}
	for _, id := range o.Gaps {
		switch {
		case !a.JSON:
			a.Print("Gap %s of %s is being healed.", id, o.Log.Table)
		case p.alias:
			err = a.PrintJSON(gapOf(o.Log, o.Log.State.GapByID(id)))
		default:
			err = a.PrintJSON(render.OrderedGap{Gap: gapOf(o.Log, o.Log.State.GapByID(id)), Resync: o.ID})
		}
		if err != nil {
			return err
		}
	}
	switch {
	case a.JSON && p.over == overTable:
		return a.PrintJSON(map[string]any{"schema": schema, "table": o.Log.Table, "resync": o.ID})
	case a.JSON || p.wait || p.alias && p.over == overGaps:
	case p.alias:
		a.Print("%s is being resynced; `replicator status` shows when that is complete.", o.Log.Table)
	default:
		a.Print("The repair of the whole table %s is asked for (%s); `replicator status` shows when it is complete.",
			o.Log.Table, o.ID)
	}
	return nil
}

// awaitOrders waits for the ends of resyncs of whole tables and prints their results. Items that
// are not equal after them are exit code 4.
func (a *app) awaitOrders(
	ctx context.Context, clients *clients.Clients, p *repairPlan, orders []*control.TableOrder,
) error {
	open := int64(0)
	for _, o := range orders {
		stop := a.ShowProgress(ctx, clients, o.Log.Table)
		result, ok, err := control.AwaitResync(ctx, clients, o.Log.Table, o.ID)
		stop()
		if err != nil && ctx.Err() != nil {
			return failure.With(failure.None, "start `replicator run`, if none runs; `replicator status` shows how far it is",
				fmt.Errorf("the repair of table %s stays asked for, and this command does not wait any more: %w",
					o.Log.Table, err))
		}
		if err != nil {
			return err
		}
		if !ok {
			return failure.With(failure.None, "`replicator status` shows it; the same command again asks for another one",
				fmt.Errorf("the repair of table %s was replaced by a later order", o.Log.Table))
		}
		r := render.ResyncedTable(schema, o.Log.Table, result)
		switch {
		case !a.JSON:
			a.Printed = true
			r.Print(a.Out)
		case p.alias:
			err = a.PrintJSON(r)
		default:
			err = a.PrintJSON(render.RepairOfTable(r, targetOf(clients, o.Log.Table), o.Gaps))
		}
		if err != nil {
			return err
		}
		open += r.Open()
	}
	if open > 0 {
		return failure.Reported(failure.Different)
	}
	return nil
}

// targetOf returns the target of a configured table.
func targetOf(clients *clients.Clients, table string) string {
	tables, err := catalog.Select(clients.Config(), table)
	if err != nil {
		return "" // the table was found by its name, in the same configuration
	}
	return tables[0].Target
}
