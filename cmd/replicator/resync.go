package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// resyncCommand returns the command `replicator resync`.
func (a *app) resyncCommand() *cobra.Command {
	var o control.ItemsResync
	cmd := &cobra.Command{
		Use:   "resync --table NAME [--keys FILE|- | --from-export URL] [--wait]",
		Short: "Make the rows of a table, or of some of its items, true again",
		Long: `resync asks the replicator that owns the table to compare all of it with Bigtable, and to write again what
differs. It reads the whole table once, within the read budget of its backfill block; rows that are equal are not
written. The stream runs on. Gaps that were accepted are healed by it.

With --keys, only the items are resynced whose keys the file names, one JSON object per line: plain as in
{"pk":"hats","n":12}, in DynamoDB's typed notation, or whole items; - reads stdin. With --from-export, only those that
changed in the window of an incremental export (file:// or s3://). Where rows are not functions of keys, the owner reads
the whole target once for that, to find the rows that items have left. No gap is healed by either.

With --wait, exit code 4 says that some items could not be made equal yet: they change too often, or the mapping or
Bigtable refuses them. Without it, the ids of what was asked for are printed.`,
		Args: a.Args(cobra.NoArgs),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			if o.Keys != "" || o.Export != "" {
				return a.resyncItems(ctx, &o)
			}
			return a.resync(ctx, o.Table, o.Wait)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Table, "table", "", "source table")
	f.StringVar(&o.Keys, "keys", "", "file with the keys of the items, - for stdin")
	f.StringVar(&o.Export, "from-export", "", "incremental export with the keys of the items")
	f.BoolVar(&o.Wait, "wait", false, "return when the resync is complete")
	cli.Must(cmd.MarkFlagRequired("table"))
	cmd.MarkFlagsMutuallyExclusive("keys", "from-export")
	return cmd
}

// resyncItems has single items resynced.
func (a *app) resyncItems(ctx context.Context, o *control.ItemsResync) error {
	cfg, err := a.Replicated(ctx, o.Table)
	if err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	o.Warn = a.Errs
	done, err := o.Run(ctx, a.Requester(cfg, clients, o.Table), cfg)
	if err != nil {
		return err
	}
	if !o.Wait && !a.JSON {
		items, requests := render.Count(int(done.Items), "item"), render.Count(len(done.IDs), "request")
		a.Print("%s of %s asked for: %s.", items, o.Table, requests)
		return nil
	}
	return a.printResynced(resyncedItems(done, o), done)
}

// resyncedItems returns the result for the output; without Wait only the number of items and the
// ids of the requests.
func resyncedItems(t *control.RequestTotal, of *control.ItemsResync) render.Resynced {
	r := render.Resynced{
		Schema: schema, Table: of.Table, Items: t.Items, Written: t.Written, Equal: t.Equal, Left: t.Left,
		Hot: t.Hot, Letters: t.Refused,
	}
	if !of.Wait {
		r.Requests = t.IDs
	}
	return r
}

// resync orders a resync of a whole table, and waits for its end if asked to.
func (a *app) resync(ctx context.Context, table string, wait bool) error {
	if _, err := a.Replicated(ctx, table); err != nil {
		return err
	}
	logs, clients, err := a.TableLogs(ctx, table)
	if err != nil {
		return err
	}
	defer clients.Close()
	if len(logs) == 0 {
		return failure.With(failure.Unready, "`replicator run` makes it when it starts",
			fmt.Errorf("table %s has no log yet", table))
	}
	id, err := logs[0].Resync(ctx, "resync", nil)
	if err != nil {
		return err
	}
	if wait {
		return a.awaitResync(ctx, clients, table, id)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"schema": schema, "table": table, "resync": id})
	}
	a.Print("%s is being resynced; `replicator status` shows when that is complete.", table)
	return nil
}

// awaitResync waits for the end of a resync of a whole table and prints its result.
func (a *app) awaitResync(ctx context.Context, clients *clients.Clients, table, id string) error {
	stop := a.ShowProgress(ctx, clients, table)
	result, ok, err := control.AwaitResync(ctx, clients, table, id)
	stop()
	if err != nil {
		return err
	}
	if !ok {
		return failure.With(failure.None, "`replicator status` shows it; wait with --wait on that one",
			fmt.Errorf("the resync of %s was replaced by a later order", table))
	}
	return a.printResynced(render.ResyncedTable(schema, table, result), nil)
}

// printResynced prints what a resync found and did. Items that are not equal after it are exit code 4.
func (a *app) printResynced(r render.Resynced, done *control.RequestTotal) error {
	if a.JSON {
		if err := a.PrintJSON(r); err != nil {
			return err
		}
	} else {
		a.Printed = true
		r.Print(a.Out)
		if done != nil {
			r.Refused(a.Out, done.Notes)
		}
	}
	if r.Open() > 0 {
		return failure.Reported(failure.Different)
	}
	return nil
}
