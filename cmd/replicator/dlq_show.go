package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/source"
)

// showCommand returns the command `replicator dlq show`.
func (a *dlqCommands) showCommand() *cobra.Command {
	var showData bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show one dead letter, and with --show-data its item", Args: a.OneArg("ID"),
		RunE: a.Body(func(ctx context.Context, args []string) error { return a.show(ctx, args[0], showData) }),
	}
	cmd.Flags().BoolVar(&showData, "show-data", false, "print the key, the item as it is now, and the whole record")
	return cmd
}

// show prints a dead letter. Its item is read only if data is shown.
func (a *dlqCommands) show(ctx context.Context, id string, showData bool) error {
	clients, t, letter, err := a.FindLetter(ctx, id)
	if err != nil {
		return err
	}
	defer clients.Close()
	line := render.Letter{Summary: letter.Summary(showData)}
	if line.Keys != nil {
		line.Next = "replicator explain --table " + cli.ShellQuote(t.Source) + " --key " + cli.ShellQuote(string(line.Keys))
		readItemOf(ctx, clients, t.Source, &line)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(line)
	}
	a.Printed = true
	line.Print(a.Out, showData)
	return nil
}

// readItemOf adds the item of a letter as it is now, or why it cannot be read.
func readItemOf(ctx context.Context, clients *clients.Clients, table string, line *render.Letter) {
	item, err := readItem(ctx, clients, table, line.Keys)
	switch {
	case err != nil:
		line.Unread = err.Error()
	case item == nil:
		line.Absent = true
	default:
		line.Item = item
	}
}

// readItem reads an item strongly; nil where there is none.
func readItem(ctx context.Context, clients *clients.Clients, table string, key []byte) (json.RawMessage, error) {
	src, err := clients.Source(ctx)
	if err != nil {
		return nil, err
	}
	batch, err := src.ReadItems(ctx, table, [][]byte{key})
	if err != nil {
		return nil, source.Explain(err)
	}
	return batch.Items[0], nil
}
