package compare

import (
	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
)

// Commands returns the commands of this package.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{verifyCommand(a), explainCommand(a), repairCommand(a), cutoverCommand(a)}
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
