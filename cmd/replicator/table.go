package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// tableCommand returns the command `replicator table` with its subcommand.
func (a *app) tableCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "table", Short: "End the replication of a table", Args: a.NoArgs()}
	var o cutover.RetireOptions
	var yes bool
	retire := &cobra.Command{
		Use:   "retire --table NAME [--drop-guards] [--drop-letters] [--drop-changes N] --yes",
		Short: "Take away what the replicator keeps of a table: log, state row, files, guards",
		Long: `retire ends the replication of a table for good, after a cutover or after the table was taken out of the
configuration. It deletes the table's log, requests and dead letters in the queue, its files in scratch, with
--drop-guards its guards in the target (_tr_live and _tr_dead), and last its row in tailrace_state. The rows of the
application are not touched. Without --yes it says what would be deleted and asks. It may be interrupted at any
moment: the table stays fenced, and the same command goes on. Guards that stayed can be deleted later with
--drop-guards, also when the table is not configured any more.

The target keeps a note that the table was retired, so that no replicator copies the table over the application's rows.
Exit 3: the table is still replicated, a replicator carries it, dead letters are left or deletions that are in no
object of the archive yet, or the log holds changes that Bigtable never gets: written to DynamoDB behind the fence or,
without one, not applied yet; nothing was changed then. What is in the archive stays.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			if o.Table == "" {
				return failure.Usagef("`replicator table retire --table NAME`", "table retire needs a table")
			}
			return a.retire(ctx, o, yes)
		}),
	}
	f := retire.Flags()
	f.StringVar(&o.Table, "table", "", "source table")
	f.BoolVar(&o.DropGuards, "drop-guards", false, "delete the table's guards in its target, too")
	f.BoolVar(&o.DropLetters, "drop-letters", false,
		"delete dead letters that were never applied, and deletions that were never archived, too")
	f.Uint64Var(&o.DropChanges, "drop-changes", 0,
		"delete so many changes that Bigtable never gets, as behind the fence: exactly the number that is there")
	f.BoolVar(&yes, "yes", false, "do it without asking")
	cmd.AddCommand(retire)
	return cmd
}

// retire prints what is kept of a table, and takes it away if that is confirmed.
func (a *app) retire(ctx context.Context, o cutover.RetireOptions, yes bool) error {
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	sink, rows, err := rowsOf(ctx, cfg, clients, o.Table)
	if err != nil {
		return err
	}
	q, err := existingQueue(ctx, cfg, clients)
	if err != nil {
		return err
	}
	_ = clients.ReadClock(ctx, o.Table) // the table may be gone: then it is this machine's clock
	o.Now = clients.Now
	o.Say = func(format string, args ...any) { fmt.Fprintf(a.Errs, format+"\n", args...) }
	r, err := cutover.PlanRetirement(ctx, cfg, q, sink, rows, o)
	if err != nil {
		return err
	}
	if !a.JSON {
		a.Printed = true
		render.Kept(a.Out, &r.Kept)
	}
	switch {
	case r.Kept.Nothing():
	case !yes && !a.Confirmed():
		return failure.Usagef("repeat it with --yes", "nothing was changed: retire was not confirmed")
	default:
		if err := r.Run(ctx); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"schema": schema, "retired": true, "kept": r.Kept})
	}
	if r.Kept.Nothing() && r.Kept.Retired != nil {
		return nil
	}
	if r.Kept.Nothing() {
		a.Print("It was retired before, or pipeline %s has never replicated it: is the name right?", cfg.Pipeline)
		return nil
	}
	a.Print("Table %s is retired. Take it out of the configuration, if it is still there.", o.Table)
	return nil
}

// rowsOf returns where the row of a table is kept, which need not be configured any more; sink is
// nil if it has no target.
func rowsOf(
	ctx context.Context, cfg *config.Config, clients *clients.Clients, table string,
) (sink *bigtable.Client, rows cutover.RowStore, err error) {
	if cfg.Archive.URL != "" {
		b, err := clients.Bucket(ctx, bucket.Options{})
		if err != nil {
			return nil, nil, err
		}
		archived := staterow.NewBucketStore(b)
		_, err = archived.LoadState(ctx, cfg.Pipeline, table)
		if err == nil || cfg.Bigtable.Project == "" {
			return nil, archived, nil
		}
	}
	sink, err = clients.Bigtable(ctx)
	return sink, sink, err
}

// existingQueue opens the logs; nil where the directory of the queue is gone.
func existingQueue(ctx context.Context, cfg *config.Config, clients *clients.Clients) (*queue.Queue, error) {
	if dir := cfg.Queue.Dir; dir != "" {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return nil, nil
		}
	}
	return clients.Queue(ctx)
}
