package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform/describe"
)

// schemaOptions are the flags of schema.
type schemaOptions struct {
	format      string
	diff, apply bool
	showData    bool
}

func (a *app) schemaCommand() *cobra.Command {
	var o schemaOptions
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print, compare or make the Bigtable tables, families and GC rules",
		Long: `schema says which tables, column families and garbage collection rules the mappings need: as commands of cbt, as
JSON, or as a data dictionary in markdown: entities, keys, columns, encodings, access patterns. --diff compares them with the instance and exits 4 if something is missing or different. --apply makes and changes
what --diff finds; it never drops anything.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.schema(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "cbt", "cbt, json or markdown")
	f.BoolVar(&o.diff, "diff", false, "compare with the instance; exit 4 if it differs")
	f.BoolVar(&o.apply, "apply", false, "make what is missing")
	f.BoolVar(&o.showData, "show-data", false, "with markdown: show rows of a few items of each table")
	cmd.MarkFlagsMutuallyExclusive("diff", "apply")
	return cmd
}

func (a *app) schema(ctx context.Context, o schemaOptions) error {
	if !slices.Contains([]string{"cbt", "json", "markdown"}, o.format) {
		return usageError("cbt, json or markdown", "unknown format %q", o.format)
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
	if o.format == "markdown" && !o.diff && !o.apply {
		return a.printDictionary(ctx, src, all, o.showData)
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

// dictionaryItems is how many items of a table the data dictionary shows as rows.
const dictionaryItems = 3

// printDictionary prints the data dictionary of all tables.
func (a *app) printDictionary(ctx context.Context, src *source.Source, all []*carried, showData bool) error {
	for i, c := range all {
		var samples []change.Image
		if showData {
			err := sampled(ctx, src, c.Source, dictionaryItems, func(img change.Image) { samples = append(samples, img) })
			if err != nil {
				return err
			}
		}
		if i > 0 {
			a.print("")
		}
		a.print("%s", strings.TrimRight(describe.Dictionary(c.program, samples), "\n"))
	}
	return nil
}

// said is a difference in words.
func said(d bigtable.Difference) string {
	name := d.Table
	if d.Family != "" {
		name += ":" + d.Family
	}
	if d.Have == "missing" {
		return strings.TrimSuffix(fmt.Sprintf("%s is missing (%s)", name, d.Want), " (table)")
	}
	return fmt.Sprintf("%s: has %s, needs %s", name, d.Have, d.Want)
}

func (a *app) printDifferences(differences []bigtable.Difference, asJSON, applied bool) error {
	if asJSON {
		return a.printJSON(map[string]any{"schema": schema, "applied": applied, "differences": append([]bigtable.Difference{}, differences...)})
	}
	for _, d := range differences {
		a.print("%s", said(d))
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
