package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// schemaOptions are the flags of schema.
type schemaOptions struct {
	format      string
	diff, apply bool
}

func (a *app) schemaCommand() *cobra.Command {
	var o schemaOptions
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print, compare or make the Bigtable tables, families and GC rules",
		Long: `schema says which tables, column families and garbage collection rules the mappings need: as commands of cbt, or as
JSON. --diff compares them with the instance and exits 4 if something is missing or different. --apply makes and changes
what --diff finds; it never drops anything.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.schema(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "cbt", "cbt or json")
	f.BoolVar(&o.diff, "diff", false, "compare with the instance; exit 4 if it differs")
	f.BoolVar(&o.apply, "apply", false, "make what is missing")
	cmd.MarkFlagsMutuallyExclusive("diff", "apply")
	return cmd
}

func (a *app) schema(ctx context.Context, o schemaOptions) error {
	if o.format != "cbt" && o.format != "json" {
		return usageError("cbt or json", "unknown format %q", o.format)
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	src, err := a.source(ctx, cfg)
	if err != nil {
		return err
	}
	defer src.Close()
	all, err := a.programs(ctx, cfg, src)
	if err != nil {
		return err
	}
	want := wantedTables(cfg, all)
	asJSON := a.json || o.format == "json"
	if !o.diff && !o.apply {
		return a.printTables(want, asJSON)
	}
	sink, err := a.bigtable(ctx, cfg, src)
	if err != nil {
		return err
	}
	defer sink.Close()
	ask := sink.Diff
	if o.apply {
		ask = sink.Ensure
	}
	differences, err := ask(ctx, want)
	if err != nil {
		return bigtableError(fmt.Errorf("compare schema: %w", err))
	}
	if err := a.printDifferences(differences, asJSON, o.apply); err != nil {
		return err
	}
	if o.diff && len(differences) > 0 {
		return silent(exitDifferences)
	}
	return nil
}

func (a *app) bigtable(ctx context.Context, cfg *config.Config, src *source.Source) (*bigtable.Client, error) {
	sink, err := bigtable.Open(ctx, bigtableOptions(cfg, src), a.logger(zapcore.WarnLevel).Named("bigtable"), nil)
	if err != nil {
		return nil, bigtableError(fmt.Errorf("open bigtable: %w", err))
	}
	return sink, nil
}

func (a *app) printTables(want []bigtable.Table, asJSON bool) error {
	if asJSON {
		return a.printJSON(map[string]any{"schema": schema, "tables": want})
	}
	for _, t := range want {
		a.print("%s", t.CBT())
	}
	return nil
}

func (a *app) printDifferences(differences []bigtable.Difference, asJSON, applied bool) error {
	if asJSON {
		return a.printJSON(map[string]any{"schema": schema, "applied": applied, "differences": append([]bigtable.Difference{}, differences...)})
	}
	for _, d := range differences {
		name := d.Table
		if d.Family != "" {
			name += ":" + d.Family
		}
		a.print("%s: has %s, needs %s", name, d.Have, d.Want)
		if !applied {
			for _, line := range d.CBT() {
				a.print("    %s", line)
			}
		}
	}
	switch {
	case applied:
		a.print("Made or changed: %d.", len(differences))
	case len(differences) == 0:
		a.print("The instance has all tables and families.")
	}
	return nil
}
