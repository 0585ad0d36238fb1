package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

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

// shadowReports reads the reports of several fronts. The same one twice would count twice: two
// fronts never see the same to the microsecond.
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
	var front int
	cmd := &cobra.Command{
		Use: "engine", Hidden: true, Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			// It ends with its input. A terminal and systemd send these to every process of a
			// group.
			signal.Ignore(os.Interrupt, syscall.SIGTERM)
			reader, _, closeSource, err := a.patternReader(ctx)
			if err != nil {
				return err
			}
			closeSource()
			file := filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid()))
			err = shadow.NewEngine(reader, file).Run(os.Stdin)
			if os.Getppid() != front { // it was killed, and reads no counts
				err = errors.Join(err, shadow.RemoveCounts(dir))
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&dir, "counts", "", "directory of the counts")
	cmd.Flags().IntVar(&front, "front", 0, "process of the front")
	return cmd
}
