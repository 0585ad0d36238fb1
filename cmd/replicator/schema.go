package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform/describe"
	"github.com/tailrace-cdc/replicator/transform/propose"
)

// schemaOptions are the flags of schema.
type schemaOptions struct {
	format      string
	diff, apply bool
	showData    bool
	splits      bool
	sample      int
}

func (a *app) schemaCommand() *cobra.Command {
	var o schemaOptions
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print, compare or make the Bigtable tables, families and GC rules",
		Long: `schema says which tables, column families and garbage collection rules the mappings need: as commands of cbt, as
JSON, or as a data dictionary in markdown: entities, keys, columns, encodings, access patterns. --diff compares them
with the instance and exits 4 if something is missing or different. --apply makes and changes what --diff finds; it
never drops anything. Materialized views are only printed: they are the administrator's.

With --splits a table that is made is divided at once, so that a backfill finds more than one node: the keys come
from a sample of the source through the mapping. They are beginnings of row keys, and are printed.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.schema(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "cbt", "cbt, json or markdown")
	f.BoolVar(&o.diff, "diff", false, "compare with the instance; exit 4 if it differs")
	f.BoolVar(&o.apply, "apply", false, "make what is missing")
	f.BoolVar(&o.splits, "splits", false, "divide new tables at keys from a sample of the sources; prints beginnings of row keys")
	f.IntVar(&o.sample, "sample", defaultSample, "with --splits: how many items of each source to read (costs read capacity)")
	f.BoolVar(&o.showData, "show-data", false, "with markdown: show rows of a few items of each table")
	cmd.MarkFlagsMutuallyExclusive("diff", "apply")
	return cmd
}

func (a *app) schema(ctx context.Context, o schemaOptions) error {
	if !slices.Contains([]string{"cbt", "json", "markdown"}, o.format) {
		return exit.Usage("cbt, json or markdown", "unknown format %q", o.format)
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
	if o.splits {
		if err := split(ctx, src, all, o.sample); err != nil {
			return err
		}
	}
	if !o.diff && !o.apply {
		return a.printTables(cfg, all, a.json || o.format == "json")
	}
	return a.compareSchema(ctx, cfg, src, all, o)
}

// compareSchema says what the instance lacks, or makes it.
func (a *app) compareSchema(ctx context.Context, cfg *config.Config, src *source.Source, all []*carried, o schemaOptions) error {
	sink, err := a.bigtable(ctx, cfg, src)
	if err != nil {
		return err
	}
	defer sink.Close()
	ask := sink.Diff
	if o.apply {
		ask = sink.Ensure
	}
	differences, err := ask(ctx, wantedTables(cfg, all))
	if err != nil {
		return exit.Bigtable(fmt.Errorf("compare schema: %w", err))
	}
	if err := a.printDifferences(differences, a.json || o.format == "json", o.apply); err != nil {
		return err
	}
	if o.diff && len(differences) > 0 {
		return exit.Silent(exit.CodeDifferences)
	}
	return nil
}

func (a *app) bigtable(ctx context.Context, cfg *config.Config, src *source.Source) (*bigtable.Client, error) {
	sink, err := bigtable.Open(ctx, bigtableOptions(cfg, src), a.logger(zapcore.WarnLevel).Named("bigtable"), nil)
	if err != nil {
		return nil, exit.Bigtable(fmt.Errorf("open bigtable: %w", err))
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	// One read says at once which address does not answer, and why: Google's client would try until a deadline.
	if _, err := sink.LoadState(asking, cfg.Pipeline, cfg.Tables[0].Source); bigtable.Classify(err) == failure.Transient {
		_ = sink.Close()
		return nil, exit.Bigtable(fmt.Errorf("reach bigtable: %w", err))
	}
	return sink, nil
}

// split finds the keys at which the targets are divided.
func split(ctx context.Context, src *source.Source, all []*carried, sample int) error {
	rows, size := map[string][][]byte{}, map[string]int64{}
	for _, c := range all {
		survey := propose.NewSurvey(c.program)
		if err := sampled(ctx, src, c.Source, sample, survey.Add); err != nil {
			return err
		}
		rows[c.Target] = append(rows[c.Target], survey.Rows()...)
		size[c.Target] += c.info.Bytes
	}
	for _, c := range all {
		c.splits = propose.Splits(rows[c.Target], propose.Parts(size[c.Target]))
		delete(rows, c.Target) // the first source of a target carries its keys
	}
	return nil
}

// view is a materialized view as schema --json prints it.
type view struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	Query string `json:"query"`
}

func (a *app) printTables(cfg *config.Config, all []*carried, asJSON bool) error {
	want, views := wantedTables(cfg, all), []view{}
	for _, c := range all {
		for _, v := range c.program.Views() {
			views = append(views, view{v.Name, c.Target, describe.Query(c.Target, v)})
		}
	}
	if asJSON {
		return a.printJSON(map[string]any{"schema": schema, "tables": want, "views": views})
	}
	for _, t := range want {
		a.print("%s", t.CBT())
	}
	for _, v := range views {
		a.print("gcloud bigtable materialized-views create %s --instance=%s --query='%s'", v.Name, cfg.Bigtable.Instance, strings.ReplaceAll(v.Query, "'", `'\''`))
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
