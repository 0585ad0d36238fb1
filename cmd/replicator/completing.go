package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// completionPatience is how long a completion may take: a person waits for it at each press of the
// tab key.
const completionPatience = 2 * time.Second

// completionWords are the values of flags that have a fixed choice, by the path of the command, or
// for all commands.
var completionWords = map[string]map[string][]string{
	"": {
		"log-level":  {"debug", "info", "warn", "error"},
		"log-format": {"json", "console"},
		"wait":       {"applied=now"},
	},
	"replicator schema":     {"format": {"cbt", "json", "terraform", "markdown"}},
	"replicator check":      {"format": {"text", "markdown"}},
	"replicator queue dump": {"kind": control.DumpKinds()},
	"replicator run":        {"from": {"latest", "trim_horizon"}},
}

// registerCompletions adds the completions of all commands below root.
func registerCompletions(root *cobra.Command, a *cli.App) {
	for _, cmd := range root.Commands() {
		registerCompletions(cmd, a)
	}
	flags := func(f *pflag.Flag) {
		switch {
		case f.Name == "table":
			completeFlag(root, f, func() []string { return completeTables(a) })
		case f.Name == "code" && root.Parent() != nil && root.Parent().Name() == "dlq":
			completeFlag(root, f, func() []string {
				return completeLetters(a, func(l *deadletter.Letter) string { return l.Code })
			})
		case f.Name == "sink" && root.Parent() != nil && root.Parent().Name() == "dlq":
			completeFlag(root, f, func() []string {
				return completeLetters(a, func(l *deadletter.Letter) string { return l.Sink })
			})
		case completionWords[root.CommandPath()][f.Name] != nil:
			completeFlag(root, f, func() []string { return completionWords[root.CommandPath()][f.Name] })
		case completionWords[""][f.Name] != nil:
			completeFlag(root, f, func() []string { return completionWords[""][f.Name] })
		}
	}
	root.Flags().VisitAll(flags)
	root.PersistentFlags().VisitAll(flags)
	if root.Parent() != nil && root.Parent().Name() == "dlq" && root.Name() != "list" {
		root.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeLetters(a, describedLetter), cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// completeFlag registers what completes a flag. It is registered once: some commands share a flag.
func completeFlag(cmd *cobra.Command, f *pflag.Flag, values func() []string) {
	if _, there := cmd.GetFlagCompletionFunc(f.Name); there {
		return
	}
	cli.Must(cmd.RegisterFlagCompletionFunc(f.Name,
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		}))
}

// completeTables returns the source tables of the configuration, and those found by its selections
// that have a log.
func completeTables(a *cli.App) (names []string) {
	cfg, problems, err := a.Load()
	if err != nil || problem.AnyError(problems) {
		return nil
	}
	for _, t := range cfg.Tables {
		names = append(names, t.Source)
	}
	if cfg.Selecting() {
		ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
		defer cancel()
		names = append(names, catalog.Logged(ctx, cfg, a.Logger)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// completeLetters returns something of each dead letter, each text once.
func completeLetters(a *cli.App, of func(*deadletter.Letter) string) (all []string) {
	cfg, problems, err := a.Load()
	if err != nil || problem.AnyError(problems) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	clients, tables, err := a.OpenLetters(ctx, cfg, "")
	if err != nil {
		return nil
	}
	defer clients.Close()
	for _, t := range tables {
		for l, err := range t.All(ctx) {
			if err != nil {
				return all
			}
			if text := of(l); !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// describedLetter returns a letter's id with what a person needs to choose it.
func describedLetter(l *deadletter.Letter) string {
	return fmt.Sprintf("%s\t%s, %s: %s", l.ID, l.Table, l.Sink, l.Code)
}
