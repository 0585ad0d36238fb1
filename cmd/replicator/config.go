package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/deploy"
)

// configCommand returns the command `replicator config`.
func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Print the schemas of the files, for editors", Args: a.NoArgs()}
	var mapping bool
	schemas := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration, or of mapping files",
		Long: `schema prints what editors need to complete and check the files of this version:

  replicator config schema >tailrace.schema.json
  replicator config schema --mapping >mapping.schema.json

Then this line at the top of a file names its schema to editors with the YAML language server:

  # yaml-language-server: $schema=tailrace.schema.json`,
		Args: a.NoArgs(),
		RunE: a.Body(func(context.Context, []string) error {
			text := deploy.ConfigSchema
			if mapping {
				text = deploy.MappingSchema
			}
			a.Print("%s", strings.TrimRight(string(text), "\n"))
			return nil
		}),
	}
	schemas.Flags().BoolVar(&mapping, "mapping", false, "the schema of mapping files")
	cmd.AddCommand(schemas)
	return cmd
}
