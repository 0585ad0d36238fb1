package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
)

// recoverCommand returns the command `replicator recover`.
func (a *app) recoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Begin a new life after a lost log (not in this version)",
		Long: `recover begins a new life of a pipeline whose log was lost, emptied, or belongs to another pipeline: versions
go on above everything that was ever written, and a resync of the tables covers what the lost log held.

This version has no resync, and a new life without one would lose changes silently, so recover refuses.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(context.Context, []string) error {
			if _, err := a.config(); err != nil {
				return err
			}
			return exit.Environment(errors.New("recover needs resync, which this version does not have; nothing was changed"),
				"bring the old log back from its volume or a copy of it; "+
					"else start under another pipeline name with empty target tables")
		}),
	}
	cmd.Flags().Bool("yes", false, "do it without asking")
	return cmd
}
