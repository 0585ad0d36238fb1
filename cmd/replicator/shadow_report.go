package main

import (
	"context"
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
			all, err := shadowReports(files)
			if err != nil {
				return err
			}
			return a.printShadow(shadow.Merge(all))
		}),
	}
}

// shadowReports reads the reports of several fronts. The same one twice would count twice: two fronts
// never see the same to the microsecond.
func shadowReports(files []string) (all []*shadow.Report, err error) {
	const hint = "what `replicator shadow --json` has printed"
	read := map[string]string{} // the file of each text
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, failure.With(failure.Usage, hint, err)
		}
		r, err := shadow.ParseReport(text)
		if err != nil {
			return nil, failure.Usagef(hint, "read %s: %w", file, err)
		}
		if before, twice := read[string(text)]; twice && r.Passed.Total > 0 {
			return nil, failure.Usagef("each report once", "%s and %s are the same report", before, file)
		}
		read[string(text)] = file
		all = append(all, r)
	}
	return all, nil
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
