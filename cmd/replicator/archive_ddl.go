package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/ddl"
)

// archiveStatement is what `archive ddl` prints of a table as JSON.
type archiveStatement struct {
	Schema  int         `json:"schema"`
	Table   string      `json:"table"`
	Dialect ddl.Dialect `json:"dialect"`
	SQL     string      `json:"sql"`
}

// ddlCommand returns the command `archive ddl`.
func (a *archiveCommands) ddlCommand() *cobra.Command {
	var table string
	cmd := &cobra.Command{
		Use:   "ddl " + strings.Join(dialects(), "|"),
		Short: "Print the statement with which a query engine reads the archive of a table",
		Long: `ddl prints a statement for each table: an external table for Athena (s3://) or BigQuery (gs://; replace
DATASET), a view for DuckDB (all stores). It reads the configuration alone, and asks neither the store nor the
engine. Execute it again after a change of archive.columns; in Athena and BigQuery drop the table before, which
deletes no object.`,
		Example: `  replicator archive ddl duckdb --table Orders >orders.sql && duckdb -init orders.sql
  replicator archive ddl athena --table Orders`,
		Args: a.OneArg("ENGINE"), ValidArgs: dialects(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(dialects(), args[0]) {
				return failure.Usagef(strings.Join(dialects(), ", "),
					"%q is not an engine for which there is a statement", args[0])
			}
			cfg, err := a.Config(cmd.Context())
			if err != nil {
				return err
			}
			return a.statements(cfg, ddl.Dialect(args[0]), table)
		},
	}
	cmd.Flags().StringVar(&table, "table", "", "only this source table")
	return cmd
}

// statements prints the statements of the tables that are archived, or of the named one, which only a rule of its
// mapping may archive.
func (a *archiveCommands) statements(cfg *config.Config, dialect ddl.Dialect, table string) error {
	if cfg.Archive.URL == "" {
		return failure.Usagef("archive: {url: …}", "the configuration has no archive of objects")
	}
	selected, err := catalog.Select(cfg, table)
	if err != nil {
		return err
	}
	for i := range selected {
		t := &selected[i]
		if table == "" && t.OnTTLExpiry != "archive" {
			continue
		}
		text, err := ddl.DDL(dialect, cfg.Archive.URL, t.Source, clients.ObjectForm(cfg, t))
		if err != nil {
			return failure.Usagef("", "%s: %v", t.Source, err)
		}
		if !a.JSON {
			fmt.Fprintln(a.Out, strings.TrimSpace(text))
			continue
		}
		if err := a.PrintJSON(archiveStatement{schema, t.Source, dialect, text}); err != nil {
			return err
		}
	}
	return nil
}

func dialects() []string {
	var all []string
	for _, d := range ddl.Dialects {
		all = append(all, string(d))
	}
	return all
}
