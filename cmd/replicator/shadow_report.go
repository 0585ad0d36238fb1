package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow"
)

// shadowReportCommand returns the command `replicator shadow report`.
func (a *app) shadowReportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report FILE...",
		Short: "Print what several fronts have seen, together",
		Long:  "report reads what `replicator shadow --json` has printed, once for each front, and prints it together.",
		Args:  cobra.MinimumNArgs(1),
		RunE: a.Body(func(_ context.Context, files []string) error {
			var all []*shadow.Report
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return failure.With(failure.Usage, "what `replicator shadow --json` has printed", err)
				}
				r := &shadow.Report{}
				if err := json.Unmarshal(text, r); err != nil || r.Counts == nil {
					return failure.Usagef("what `replicator shadow --json` has printed", "read %s: no report of shadow", file)
				}
				all = append(all, r)
			}
			return a.printShadow(shadow.Merge(all))
		}),
	}
}

// shadowEngineCommand returns the command of the process that counts.
func (a *app) shadowEngineCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "engine", Hidden: true, Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			a.WithoutBigtable = true
			cfg, err := a.Config(ctx)
			if err != nil {
				return err
			}
			clients := a.Clients(cfg)
			defer func() { _ = clients.Close() }()
			src, err := clients.Source(ctx)
			if err != nil {
				return err
			}
			reader, err := a.patternReader(ctx, cfg, src)
			if err != nil {
				return err
			}
			file := filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid()))
			return shadow.NewEngine(reader, file).Run(os.Stdin)
		}),
	}
	cmd.Flags().StringVar(&dir, "counts", "", "directory of the counts")
	return cmd
}
