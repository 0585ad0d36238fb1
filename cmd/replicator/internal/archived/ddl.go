package archived

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/sink/archive/ddl"
)

// ddlCommand returns the command `archive ddl`.
func (a *commands) ddlCommand() *cobra.Command {
	var table string
	cmd := &cobra.Command{
		Use:   "ddl " + strings.Join(dialects(), "|"),
		Short: "Print the statement with which a query engine reads the archive of a table",
		Args:  a.Args(cobra.ExactArgs(1)), ValidArgs: dialects(),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := a.Config()
			if err != nil {
				return err
			}
			if !slices.Contains(dialects(), args[0]) {
				return exit.Usage(strings.Join(dialects(), ", "), "%q is no engine for which there is a statement", args[0])
			}
			if cfg.Archive.URL == "" {
				return exit.Usage("archive: {url: …}", "the configuration has no archive of objects")
			}
			for _, t := range cfg.Tables {
				if table != "" && t.Source != table || table == "" && t.OnTTLExpiry != "archive" {
					continue
				}
				text, err := ddl.DDL(ddl.Dialect(args[0]), cfg.Archive.URL, t.Source, wire.ObjectForm(cfg, &t))
				if err != nil {
					return exit.Usage("", "%s: %v", t.Source, err)
				}
				fmt.Fprintln(a.Out, strings.TrimSpace(text))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&table, "table", "", "only this source table")
	return cmd
}

func dialects() []string {
	var all []string
	for _, d := range ddl.Dialects {
		all = append(all, string(d))
	}
	return all
}
