package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/transform/describe"
)

// schemaOptions are the flags of schema.
type schemaOptions struct {
	format      string
	diff, apply bool
	force       bool
	showData    bool
	splits      bool
	sample      int
}

// schemaCommand returns the command `replicator schema`.
func (a *app) schemaCommand() *cobra.Command {
	var o schemaOptions
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print, compare or make the Bigtable tables, families and GC rules",
		Long: `schema prints which tables, column families and garbage collection rules the mappings need: as commands of cbt,
as JSON, as a module of Terraform, as external tables of BigQuery by target, or as a data dictionary in markdown:
entities, keys, columns, encodings, access patterns. --diff compares them with the instance and exits 4 if something is
missing or different. --apply makes and changes what --diff finds; it never drops anything. In a replicated instance
Bigtable refuses GC rules that keep cells longer, because clusters may have collected different ones; --force ignores
that. Materialized views are only printed: creating them is left to the administrator.

Where the configuration declares the keys of all tables (keys: [pk:S, sk:S]), printing needs no connection.

With --splits a new table is split when it is made, so that a backfill is spread over several nodes. The split keys
come from mapping a sample of the source. They are prefixes of row keys, and are printed.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.schema(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "cbt", "cbt, json, terraform, bigquery or markdown")
	f.BoolVar(&o.diff, "diff", false, "compare with the instance; exit 4 if it differs")
	f.BoolVar(&o.apply, "apply", false, "make what is missing")
	f.BoolVar(&o.force, "force", false,
		"with --apply: let GC rules keep more in a replicated instance, which Bigtable refuses else")
	f.BoolVar(&o.splits, "splits", false,
		"split new tables at keys from a sample of the sources; prints prefixes of row keys")
	f.IntVar(&o.sample, "sample", preflight.DefaultSample,
		"with --splits: how many items of each source to read (costs read capacity)")
	f.BoolVar(&o.showData, "show-data", false, "with markdown: show rows of a few items of each table")
	cmd.MarkFlagsMutuallyExclusive("diff", "apply")
	return cmd
}

// schema compiles the mappings, and prints, compares or makes what they need.
func (a *app) schema(ctx context.Context, o schemaOptions) error {
	if !slices.Contains([]string{"cbt", "json", "terraform", "bigquery", "markdown"}, o.format) {
		return failure.Usagef("cbt, json, terraform, bigquery or markdown", "unknown format %q", o.format)
	}
	if o.force && !o.apply {
		return failure.Usagef("schema --apply --force", "--force belongs to --apply")
	}
	cfg, err := a.Replicated(ctx, "")
	if err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	var src *source.Source
	if o.splits || o.showData || !catalog.KeysDeclared(cfg) {
		if src, err = clients.Source(ctx); err != nil {
			return err
		}
	}
	tables, err := a.CatalogFor(ctx, cfg, src, "")
	if err != nil {
		return err
	}
	return a.Missed(tables, a.schemaOf(ctx, cfg, clients, src, tables, o))
}

// schemaOf is schema of tables that are compiled.
func (a *app) schemaOf(
	ctx context.Context, cfg *config.Config, clients *clients.Clients, src *source.Source, tables *catalog.Catalog,
	o schemaOptions,
) error {
	if o.format == "markdown" && !o.diff && !o.apply {
		return a.printDictionary(ctx, src, tables, o.showData)
	}
	if o.splits {
		if err := tables.Split(ctx, src, o.sample); err != nil {
			return err
		}
	}
	if !o.diff && !o.apply {
		if a.JSON {
			o.format = "json"
		}
		return a.printTables(cfg, tables, o.format)
	}
	return a.compareSchema(ctx, clients, tables, o)
}

// compareSchema prints what the instance lacks, and with --apply makes it.
func (a *app) compareSchema(
	ctx context.Context, clients *clients.Clients, tables *catalog.Catalog, o schemaOptions,
) error {
	sink, err := clients.Bigtable(ctx)
	if err != nil {
		return err
	}
	compare := sink.Diff
	switch {
	case o.force:
		compare = sink.EnsureForced
	case o.apply:
		compare = sink.Ensure
	}
	differences, err := compare(ctx, tables.BigtableTables())
	if err != nil {
		return bigtable.Explain(fmt.Errorf("compare schema: %w", err))
	}
	if err := a.printDifferences(differences, a.JSON || o.format == "json", o.apply); err != nil {
		return err
	}
	if o.diff && len(differences) > 0 {
		return failure.Reported(failure.Different)
	}
	return nil
}

// view is a materialized view as schema --json prints it.
type view struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	Query string `json:"query"`
}

// printTables prints the Bigtable tables and the materialized views that the mappings need.
func (a *app) printTables(cfg *config.Config, tables *catalog.Catalog, format string) error {
	want, views := tables.BigtableTables(), []view{}
	for _, t := range tables.Tables {
		for _, v := range t.Program.Views() {
			views = append(views, view{v.Name, t.Target, describe.Query(t.Target, v)})
		}
	}
	comment := ""
	switch format {
	case "json":
		return a.PrintJSON(map[string]any{"schema": schema, "tables": want, "views": views})
	case "bigquery":
		return a.PrintJSON(externalTables(cfg, tables))
	case "terraform":
		a.Print("%s", tableschema.Terraform(cfg.Bigtable.Project, cfg.Bigtable.Instance, want))
		comment = "# "
	default:
		for _, t := range want {
			a.Print("%s", t.CBT())
		}
	}
	for _, v := range views {
		command := fmt.Sprintf("gcloud bigtable materialized-views create %s --instance=%s --query='%s'",
			v.Name, cfg.Bigtable.Instance, strings.ReplaceAll(v.Query, "'", `'\''`))
		a.Print("%s", comment+strings.ReplaceAll(command, "\n", "\n"+comment))
	}
	return nil
}

// externalTables returns the targets as external tables of BigQuery.
func externalTables(cfg *config.Config, tables *catalog.Catalog) map[string]describe.External {
	programs := map[string][]*transform.Program{}
	for _, t := range tables.Tables {
		programs[t.Target] = append(programs[t.Target], t.Program)
	}
	all := map[string]describe.External{}
	for target, of := range programs {
		if target != "" { // only archived
			uri := describe.BigtableURI(cfg.Bigtable.Project, cfg.Bigtable.Instance, target)
			all[target] = describe.BigQuery(uri, of...)
		}
	}
	return all
}

// dictionaryItems is how many items of a table the data dictionary shows as rows.
const dictionaryItems = 3

// printDictionary prints the data dictionary of all tables.
func (a *app) printDictionary(ctx context.Context, src *source.Source, tables *catalog.Catalog, showData bool) error {
	for i, t := range tables.Tables {
		var samples []change.Image
		if showData {
			err := catalog.Sample(ctx, src, t.Source, dictionaryItems, func(img change.Image) { samples = append(samples, img) })
			if err != nil {
				return err
			}
		}
		if i > 0 {
			a.Print("")
		}
		a.Print("%s", strings.TrimRight(describe.Dictionary(t.Program, samples), "\n"))
	}
	return nil
}

// printDifferences prints what was made if applied is set, else what the instance lacks and the
// commands that make it.
func (a *app) printDifferences(differences []tableschema.Difference, asJSON, applied bool) error {
	if asJSON {
		list := append([]tableschema.Difference{}, differences...) // in JSON [], not null
		return a.PrintJSON(map[string]any{"schema": schema, "applied": applied, "differences": list})
	}
	for _, d := range differences {
		if applied {
			a.Print("%s", render.Made(d))
			continue
		}
		a.Print("%s", settings.DifferenceText(d))
		for _, line := range d.CBT() {
			a.Print("    %s", line)
		}
	}
	switch {
	case applied:
		a.Print("Made or changed: %d.", len(differences))
	case len(differences) == 0:
		a.Print("The instance has all tables and families.")
	}
	return nil
}
