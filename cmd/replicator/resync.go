package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
)

// resyncCommand returns the command `replicator resync`, an alias of repair.
func (a *app) resyncCommand() *cobra.Command {
	var s selection
	var wait bool
	cmd := &cobra.Command{
		Use:   "resync --table NAME [--keys FILE|- | --from-export URL] [--wait]",
		Short: "The same as repair with --table, --keys or --from-export, without waiting",
		Long: "resync is the same as `replicator repair --table NAME [--keys FILE|- | --from-export URL] --no-wait`. " +
			`With --wait it
is the same without --no-wait, but for single items, which repair compares once more afterwards. The next minor version
has repair alone.

With --wait, exit code 4 says that some items could not be made equal yet: they change too often, or the mapping or
Bigtable refuses them. Without it, the ids of what was asked for are printed.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			s.noWait = !wait
			p, err := s.planAlias()
			if err != nil {
				return err
			}
			return a.repair(ctx, p, false)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&s.table, "table", "", "source table")
	f.StringVar(&s.keys, "keys", "", "file with the keys of the items, - for stdin")
	f.StringVar(&s.export, "from-export", "", "incremental export with the keys of the items")
	f.BoolVar(&wait, "wait", false, "return when the resync is complete")
	cli.Must(cmd.MarkFlagRequired("table"))
	cmd.MarkFlagsMutuallyExclusive("keys", "from-export")
	return cmd
}
