package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/preflight"
)

// mappingCommand returns the command `replicator mapping`.
func (a *app) mappingCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mapping", Short: "Test a mapping; compare a changed one with the one that wrote the rows, and accept it",
		Args: a.NoArgs(),
	}
	diff := &cobra.Command{
		Use: "diff", Short: "Say what a changed mapping does to the rows that are there", Args: a.NoArgs(),
		Long: `diff compares the mapping of each table with the one that wrote its rows, whose text is stored in Bigtable: the
same cells; other cells in the same rows; or rows that move. It says whether the change can be accepted. Exit 4: it
cannot, and diff prints the commands of the other way.`,
	}
	accept := &cobra.Command{
		Use: "accept", Short: "Let the rows be written again with the changed mapping", Args: a.NoArgs(),
		Long: `accept stores that the table goes on with the new mapping. The replicator that owns it, or the next one that
does, copies the table with it. It is refused where a copy could leave something of the old mapping: see diff. It is
also refused (exit 3) while the target lacks a family or a rule that the new mapping needs: first ` +
			"`schema --apply`.",
	}
	for _, c := range []*cobra.Command{diff, accept} {
		var table, old string
		c.Flags().StringVar(&table, "table", "", "only this source table")
		c.Flags().StringVar(&old, "old", "", "file of the mapping that wrote the rows, where Bigtable does not hold it")
		c.RunE = a.Body(func(ctx context.Context, _ []string) error {
			return a.mapping(ctx, table, old, c == accept)
		})
	}
	cmd.AddCommand(diff, accept, a.mappingTestCommand())
	return cmd
}

// mapping prints what has changed in the mappings, and accepts it if asked to.
func (a *app) mapping(ctx context.Context, table, old string, accept bool) error {
	cfg, err := a.Replicated(ctx, table)
	if err != nil {
		return err
	}
	logs, clients, err := a.TableLogs(ctx, table)
	if err != nil {
		return err
	}
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	tables, err := a.CatalogFor(ctx, cfg, src, table)
	if err != nil {
		return err
	}
	sink, err := clients.Bigtable(ctx)
	if err != nil {
		return err
	}
	edits, err := tables.EditsOf(ctx, sink, table, old)
	if err != nil {
		return err
	}
	refused := false
	for i := range edits {
		e := &edits[i]
		changed := e.From != e.To
		refused = refused || changed && !e.Acceptable
		if a.JSON {
			err = a.PrintJSON(map[string]any{
				"schema": schema, "table": e.Source, "changed": changed, "kind": e.Kind,
				"reasons":    append([]string{}, e.Reasons...),
				"acceptable": e.Acceptable, "why": e.Why, "from": e.From, "to": e.To, "started": e.From != "",
			})
		} else {
			a.Printed = true
			render.MappingEdit(a.Out, e, accept)
		}
		if err == nil && accept && changed && e.Acceptable {
			if err = preflight.CheckTarget(ctx, sink, tables, e.Target); err != nil {
				return err
			}
			if err = e.Store(ctx, sink, cfg.Pipeline); err == nil {
				err = a.acceptMapping(ctx, logs, e)
			}
		}
		if err != nil {
			return err
		}
	}
	if refused {
		err = failure.Reported(failure.Different)
	}
	return a.Missed(tables, err)
}

// acceptMapping appends to a table's log that its mapping may change.
func (a *app) acceptMapping(ctx context.Context, logs []*control.Log, e *catalog.MappingEdit) error {
	for _, l := range logs {
		if l.Table != e.Source {
			continue
		}
		control := checkpoint.Control{Accept: &checkpoint.Accept{From: e.From, To: e.To}}
		if _, err := l.Append(ctx, "accept mapping", control); err != nil {
			return err
		}
		if !a.JSON {
			a.Print("%s: the mapping is accepted: the table is copied with it. From now on start `run` with its file.", e.Source)
		}
		return nil
	}
	return failure.With(failure.Unready, "see `replicator check`", fmt.Errorf("table %s has no log", e.Source))
}
