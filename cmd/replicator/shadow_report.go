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
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/shadow"
)

// shadowReportCommand returns the command `replicator shadow report`.
func (a *app) shadowReportCommand() *cobra.Command {
	var html string
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "Print what several fronts have seen, together",
		Long:  "report reads what `replicator shadow --json` has printed, once for each front, and prints it together.",
		Args:  a.SomeArgs("FILE"),
		RunE: a.Body(func(_ context.Context, files []string) error {
			all, err := shadow.ReadReports(files)
			if err != nil {
				return err
			}
			report := shadow.Merge(all)
			if html != "" {
				if err := a.writeShadowPage(report, html); err != nil {
					return err
				}
			}
			return a.printShadow(report, "")
		}),
	}
	cmd.Flags().StringVar(&html, "html", "", "write the report to this file as a page")
	return cmd
}

// writeShadowPage writes a report as a page.
func (a *app) writeShadowPage(r *shadow.Report, path string) error {
	file, err := openOutput(a.App, path, "page", "--html")
	if err != nil {
		return err
	}
	defer file.close()
	if err := r.WritePage(file, a.Version); err != nil {
		return err
	}
	return file.finish(0o644)
}

// shadowEngineCommand returns the command of the process that counts.
func (a *app) shadowEngineCommand() *cobra.Command {
	var dir string
	var front int
	var replays bool
	var mismatches string
	cmd := &cobra.Command{
		Use: "engine", Hidden: true, Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			// It ends with its input. A terminal and systemd send these to every process of a
			// group.
			signal.Ignore(os.Interrupt, syscall.SIGTERM)
			in, err := a.openShadow(ctx, replays)
			if err != nil {
				return err
			}
			defer in.Close()
			engine := shadow.NewEngine(in.Reader, filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid())))
			if replays {
				tables, err := in.ReplayTables(ctx)
				if err != nil {
					return err
				}
				write, closeFile, err := shadow.MismatchFile(mismatches, in.Tables)
				if err != nil {
					return err
				}
				defer func() { _ = closeFile() }()
				engine.Replay(tables, write, a.Logger(zapcore.WarnLevel).Named("shadow").Sugar().Warnf)
			}
			err = engine.Run(ctx, os.Stdin)
			if os.Getppid() != front { // it was killed, and reads no counts
				err = errors.Join(err, shadow.RemoveCounts(dir))
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&dir, "counts", "", "directory of the counts")
	cmd.Flags().IntVar(&front, "front", 0, "process of the front")
	cmd.Flags().BoolVar(&replays, "replay", false, "replay reads")
	cmd.Flags().StringVar(&mismatches, "mismatches", "", "file of mismatches")
	return cmd
}
