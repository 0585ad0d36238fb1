package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// version is set by the linker of a release.
var version = ""

// versionCommand returns the command `replicator version`.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the formats that this build reads",
		Args:  a.NoArgs(),
		RunE:  a.Body(func(context.Context, []string) error { return a.printVersion() }),
	}
}

// printVersion prints what `replicator version` and `replicator --version` print.
func (a *app) printVersion() error {
	v := buildVersion()
	if a.JSON {
		return a.PrintJSON(map[string]any{"schema": schema, "version": v, "go": runtime.Version(),
			"platform": runtime.GOOS + "/" + runtime.GOARCH, "log_format": checkpoint.Format})
	}
	a.Print("replicator %s (%s, %s/%s, log format %d)",
		v, runtime.Version(), runtime.GOOS, runtime.GOARCH, checkpoint.Format)
	return nil
}

// buildVersion returns the version of a release, else the revision that Go has recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = s.Value[:min(12, len(s.Value))]
		}
	}
	if v == "" {
		return "(devel)"
	}
	return v
}

// manCommand returns the command `replicator man`.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages into a directory",
		Hidden: true,
		Args:   a.OneArg("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Body(func(context.Context, []string) error {
				root := cmd.Root()
				root.DisableAutoGenTag = true
				header := &doc.GenManHeader{
					Title: "REPLICATOR", Section: "1", Source: "Tailrace " + buildVersion(), Manual: "Tailrace",
				}
				if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // man pages are for all users
					return fmt.Errorf("write man pages: %w", err)
				}
				if err := doc.GenManTree(root, header, args[0]); err != nil {
					return fmt.Errorf("write man pages: %w", err)
				}
				return nil
			})(cmd, args)
		},
	}
}
