package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/failure"
)

// app has a method for each command.
type app struct{ *cli.App }

// schema is the format number of every JSON object that the commands print.
const schema = cli.Schema

// root returns the command line: all commands under one.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "replicator",
		Short: "Replicate DynamoDB tables into Bigtable, change by change",
		Long: `replicator tails DynamoDB Streams, keeps what it read in a durable log, and applies it to Bigtable:
in order per item, idempotently, with checkpoints.

Try it without any cloud:   replicator demo
Start with a live table:    replicator init --table NAME -o tailrace.yaml
                            replicator schema --apply && replicator check && replicator run`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	asked := root.Flags().Bool("version", false, "print what the command version prints")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if !*asked {
			return cmd.Help()
		}
		return a.Body(func(context.Context, []string) error { return a.printVersion() })(cmd, args)
	}
	a.Path = root.Name()
	flags := root.PersistentFlags()
	flags.StringVarP(&a.ConfigPath, "config", "c", cli.ConfigFile(),
		"configuration file (default: $TAILRACE_CONFIG, ./tailrace.yaml, or /etc/tailrace/tailrace.yaml)")
	flags.Lookup("config").DefValue = "" // man pages are made on one machine and read on others
	flags.StringVar(&a.LogLevel, "log-level", "", "debug, info, warn or error (default: info for run and demo, else warn)")
	flags.StringVar(&a.LogFormat, "log-format", "", "json or console (default: console on a terminal, else json)")
	flags.BoolVar(&a.JSON, "json", false, "print JSON on stdout; progress and logs go to stderr")
	flags.BoolVar(&a.NoColor, "no-color", false, "no colors and no moving progress, even on a terminal; $NO_COLOR")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		a.Path = cmd.CommandPath()
		return err
	})
	root.AddCommand(
		a.versionCommand(), a.manCommand(),
		a.demoCommand(), a.initCommand(), a.sandboxCommand(), a.runCommand(), a.checkCommand(), a.schemaCommand(),
		a.statusCommand(), a.queueCommand(), dlqCommand(a.App), a.gapsCommand(), a.pauseCommand(),
		a.resumeCommand(), a.copyCommand(), a.resyncCommand(), a.mappingCommand(),
		a.recoverCommand(), a.tableCommand(), a.configCommand(),
	)
	root.AddCommand(a.archiveCommand(), a.upgradeCommand())
	root.AddCommand(verifyCommand(a.App), explainCommand(a.App), a.repairCommand(), cutoverCommand(a.App),
		a.shadowCommand())
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && !cmd.Runnable() {
			// Without a function of its own, cobra prints the help for any argument, and a mistyped
			// subcommand succeeds.
			cmd.RunE = a.helpOfGroup
		}
	}
	group(root)
	registerCompletions(root, a.App)
	return root
}

// helpOfGroup prints the help of a command that has subcommands alone. It is no JSON document.
func (a *app) helpOfGroup(cmd *cobra.Command, _ []string) error {
	if !a.JSON {
		return cmd.Help()
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return failure.Usagef("`"+cmd.CommandPath()+"` with one of: "+strings.Join(names, ", "), "%s needs a subcommand",
		cmd.CommandPath())
}

// groups are the groups of commands in the help, in their order.
var groups = []struct{ id, title, commands string }{
	{"start", "Start:", "demo sandbox init check schema run"},
	{"watch", "Watch:", "status verify"},
	{"inspect", "Inspect:", "explain queue archive shadow"},
	{"migrate", "Migrate:", "copy mapping cutover table"},
	{"repair", "Repair:", "repair resync gaps dlq recover"},
	{"administer", "Administer:", "pause resume upgrade config version"},
}

// group gives each command its group and its place in the help.
func group(root *cobra.Command) {
	cobra.EnableCommandSorting = false // the help shows the commands in the order in which they are used
	var order []string
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		names := strings.Fields(g.commands)
		for _, cmd := range root.Commands() {
			if slices.Contains(names, cmd.Name()) {
				cmd.GroupID = g.id
			}
		}
		order = append(order, names...)
	}
	last := groups[len(groups)-1].id
	root.SetHelpCommandGroupID(last)
	root.SetCompletionCommandGroupID(last)
	commands := root.Commands()
	root.RemoveCommand(commands...)
	slices.SortStableFunc(commands, func(a, b *cobra.Command) int {
		return cmp.Compare(slices.Index(order, a.Name()), slices.Index(order, b.Name()))
	})
	root.AddCommand(commands...)
}
