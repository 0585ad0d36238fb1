package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/dump"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/queue"
)

// queueCommand returns the command `replicator queue`.
func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Short: "Look into the logs", Args: a.Args(cobra.NoArgs)}
	cmd.AddCommand(a.queueDumpCommand(), a.queueEnvCommand())
	return cmd
}

// queueDumpCommand returns the command `replicator queue dump`.
func (a *app) queueDumpCommand() *cobra.Command {
	var o dump.Options
	var table, key string
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Print what the logs hold, one JSON object per line",
		Long: `dump prints one line per change, and one per other entry (claim, start, graph, beat, marks, gap, control,
snapshot), up to the newest entry at the time of the call. Keys and items are printed only with --show-data.`,
		Args: a.Args(cobra.NoArgs),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.dump(ctx, table, key, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&table, "table", "", "only this source table")
	f.StringVar(&o.Shard, "shard", "", "only changes of this shard")
	f.StringVar(&o.From, "from", "", "first entry: a sequence number, or a time (RFC 3339)")
	f.IntVar(&o.Limit, "limit", 0, "maximum number of lines per table (default: all)")
	f.StringVar(&key, "key", "", `only changes of the item with this key: {"pk":{"S":"hats"},"sk":{"S":"fedora"}}`)
	f.BoolVar(&o.ShowData, "show-data", false, "print keys and images")
	return cmd
}

// dump prints the logs of the selected tables, one after the other.
func (a *app) dump(ctx context.Context, table, key string, o dump.Options) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	tables, err := catalog.Select(cfg, table)
	if err != nil {
		return err
	}
	if o.Keys, err = dump.KeyHashes(key); err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	q, err := clients.Queue(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		log, err := q.Log(ctx, t.Source)
		if errors.Is(err, queue.ErrNoLog) && table == "" {
			continue
		}
		if err != nil {
			return exit.Environment(fmt.Errorf("open log of %s: %w", t.Source, err), "see `replicator check`")
		}
		if err := dump.Log(ctx, log, o, a.printDumped); err != nil {
			return fmt.Errorf("dump log of %s: %w", t.Source, err)
		}
	}
	return nil
}

func (a *app) printDumped(line *dump.Line) error {
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
		Args: a.Args(cobra.NoArgs),
		RunE: a.Body(func(context.Context, []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			address, err := wire.QueueURL(cfg)
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
