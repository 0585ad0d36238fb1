package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
)

// queueCommand returns the command `replicator queue`.
func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Short: "Look into the logs", Args: a.NoArgs()}
	cmd.AddCommand(a.queueDumpCommand(), a.queueEnvCommand())
	return cmd
}

// queueDumpCommand returns the command `replicator queue dump`.
func (a *app) queueDumpCommand() *cobra.Command {
	var o dumpOptions
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Print what the logs hold, one JSON object per line",
		Long: `dump prints one line per change, and one per other entry (claim, start, graph, beat, marks, gap, control,
snapshot), up to the newest entry at the time of the call, or with -f until it is interrupted. Keys and items are
printed only with --show-data.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.dump(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.table, "table", "", "only this source table")
	f.StringSliceVar(&o.kinds, "kind", nil, "only lines of these kinds: change, claim, gap, control …")
	f.DurationVar(&o.Since, "since", 0, "only what was stored in the last 10m, 2h …")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what is stored from now on")
	f.StringVar(&o.Shard, "shard", "", "only changes of this shard")
	f.StringVar(&o.From, "from", "", "first entry: a sequence number, or a time (RFC 3339)")
	f.IntVar(&o.Limit, "limit", 0, "maximum number of lines per table (default: all)")
	f.StringVar(&o.key, "key", "", `only changes of the item with this key: pk=hats,sk=fedora, {"pk":"hats",…}, or typed`)
	f.BoolVar(&o.ShowData, "show-data", false, "print keys and images")
	cmd.MarkFlagsMutuallyExclusive("from", "since")
	return cmd
}

// dumpOptions are the flags of `queue dump`.
type dumpOptions struct {
	control.DumpOptions
	table, key string
	kinds      []string
	follow     bool
}

// followPeriod is how often `queue dump -f` looks for new entries.
const followPeriod = 500 * time.Millisecond

// dump prints the logs of the selected tables, one after the other, and with follow what comes
// after.
func (a *app) dump(ctx context.Context, o dumpOptions) error {
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	tables, err := catalog.Select(cfg, o.table)
	if err != nil {
		return err
	}
	if o.Keys, err = control.KeyHashes(o.key); err != nil {
		return err
	}
	if o.Kinds, err = control.DumpKindsOf(o.kinds); err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	q, err := clients.Queue(ctx)
	if err != nil {
		return err
	}
	logs, shardIn := map[string]*control.Dumper{}, 0
	for _, t := range tables {
		log, err := q.Log(ctx, t.Source)
		if errors.Is(err, queue.ErrNoLog) && o.table == "" {
			continue
		}
		if err != nil {
			return failure.With(failure.Unready, "see `replicator check`", fmt.Errorf("open log of %s: %w", t.Source, err))
		}
		if err := hasShard(ctx, log, o.Shard, &shardIn); err != nil {
			return err
		}
		logs[t.Source] = control.NewDumper(log, o.DumpOptions, a.printDumped)
		if err := a.dumpNext(ctx, t.Source, logs, o.follow); err != nil {
			return err
		}
	}
	if o.Shard != "" && shardIn == 0 && !o.follow {
		return failure.Usagef("`replicator queue dump --kind graph` prints the shards of each table",
			"no log has a shard %s", o.Shard)
	}
	for o.follow && len(logs) > 0 {
		if failure.Pause(ctx, followPeriod) != nil {
			return nil // interrupted, as -f says
		}
		for _, table := range slices.Sorted(maps.Keys(logs)) {
			if err := a.dumpNext(ctx, table, logs, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasShard counts a log in which a shard is.
func hasShard(ctx context.Context, log *queue.Log, shard string, in *int) error {
	if shard == "" {
		return nil
	}
	state, err := log.Fold(ctx)
	if err != nil {
		return clients.Explain(err)
	}
	if state.Shards[shard] != nil {
		*in++
	}
	return nil
}

// dumpNext prints what is new in a table's log. A log of which enough lines were printed is taken
// out of logs.
func (a *app) dumpNext(ctx context.Context, table string, logs map[string]*control.Dumper, follow bool) error {
	full, err := logs[table].Next(ctx)
	switch {
	case full:
		delete(logs, table)
	case follow && errors.Is(err, queue.ErrTrimmed):
		fmt.Fprintf(a.Errs, "%s: entries of %s were trimmed before they were printed: going on with the oldest\n",
			a.Path, table)
		logs[table].Restart()
	case err != nil && (!follow || ctx.Err() == nil): // not the end of what is followed
		return fmt.Errorf("dump log of %s: %w", table, err)
	}
	return nil
}

func (a *app) printDumped(line *control.DumpedLine) error {
	line.Schema = schema
	return a.PrintJSON(line)
}

// queueEnvCommand returns the command `replicator queue env`.
func (a *app) queueEnvCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print shell variables with which the nats tool reaches the logs",
		Long: `eval "$(replicator queue env)" lets the nats tool talk to a running daemon's embedded server. The token gives
full access.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(context.Context, []string) error {
			cfg, err := a.File()
			if err != nil {
				return err
			}
			address, err := clients.QueueURL(cfg)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(map[string]any{"schema": schema, "NATS_URL": address, "NATS_CREDS": cfg.Queue.Creds})
			}
			a.Print("export NATS_URL=%s", cli.ShellQuote(address))
			if cfg.Queue.Creds != "" {
				a.Print("export NATS_CREDS=%s", cli.ShellQuote(cfg.Queue.Creds))
			}
			return nil
		}),
	}
}
