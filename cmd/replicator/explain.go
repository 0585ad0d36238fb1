package main

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/explain"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// explainFlags are the flags of `replicator explain`.
type explainFlags struct {
	table, key, row, row64, item, record string
	showData                             bool
}

// explainCommand returns the command `replicator explain`.
func explainCommand(a *cli.App) *cobra.Command {
	var o explainFlags
	cmd := &cobra.Command{
		Use:   "explain (--key JSON | --row KEY | --row-base64 KEY | --item FILE | --record FILE) [--table NAME]",
		Short: "Why does this row look so? An item or a row with all that is known of it, and a verdict",
		Long: `explain --key shows an item end to end: as it is now, what the mapping makes of it, what Bigtable holds with
versions and guards, its changes in the log, its dead letters, requests that wait for it, and in one sentence what is
true: equal, so many changes behind, different, refused by the mapping, or unproven with the reason; then what to do.
The key is pk=hats,n=12, plain as in {"pk":"hats","n":12}, or in DynamoDB's typed notation. The rows are those that the
item's key, its present attributes, its changes in the log and its dead letters name.

explain --row shows which item owns each cell of a row in Bigtable, and which items the row turns back into. Where one
item alone can have the row and it has nothing of it, the item is explained that the row's key names.
--row-base64 takes keys that are no text, as in a file of differences.

Both read, and write nothing. What differs may be on its way: then explain waits until Bigtable is proven to have every
change, which takes some seconds and needs the daemon. Without it, explain shows what it can and says what it cannot.
Values are shown with --show-data only, and so are the keys of the items in a row.

explain --item and --record take an item in DynamoDB JSON, or a record of DynamoDB Streams, and show which rows, cells
and deletes the mapping makes of it. FILE is - for standard input.

Exit 4: something is different, refused by the mapping, or unproven. What is only behind is 0.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return runExplain(ctx, a, &o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.table, "table", "", "source table (default: the only one); with --row any table of the target")
	f.StringVar(&o.key, "key", "", `key of an item: pk=hats,sk=fedora, {"pk":"hats","sk":"fedora"}, or typed`)
	f.StringVar(&o.row, "row", "", "key of a row in Bigtable, as text")
	f.StringVar(&o.row64, "row-base64", "", "key of a row in Bigtable, in base64")
	f.StringVar(&o.item, "item", "", `file with an item: {"pk":{"S":"hats"},…} or {"pk":"hats",…}; - for stdin`)
	f.StringVar(&o.record, "record", "", "file with a record of DynamoDB Streams")
	f.BoolVar(&o.showData, "show-data", false, "with --key and --row: print values and keys too")
	cmd.MarkFlagsOneRequired("item", "record", "key", "row", "row-base64")
	cmd.MarkFlagsMutuallyExclusive("item", "record", "key", "row", "row-base64")
	return cmd
}

// runExplain compiles the mappings, and explains what the flags name.
func runExplain(ctx context.Context, a *cli.App, o *explainFlags) error {
	if _, err := control.KeyHashes(o.key); err != nil { // before anything is read
		return err
	}
	row, err := base64.StdEncoding.DecodeString(o.row64)
	if err != nil {
		return failure.Usagef("as in a file of differences, or `printf %s KEY | base64`", "read --row-base64: %w", err)
	}
	if o.row != "" {
		row = []byte(o.row)
	}
	cfg, err := a.Replicated(ctx, o.table)
	if err != nil {
		return err
	}
	if len(row) > 0 && o.table == "" && oneTarget(cfg) {
		o.table = cfg.Tables[0].Source
	}
	if o.table, err = onlyTable(a, cfg, o.table); err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	var src *source.Source
	live := o.key != "" || len(row) > 0
	if live || !catalog.KeysDeclared(cfg) {
		if src, err = clients.Source(ctx); err != nil {
			return err
		}
	}
	// All tables of the target are compiled, because a row's class depends on all that write it.
	tables, err := a.Catalog(ctx, cfg, src, o.table)
	if err != nil {
		return err
	}
	t := tables.Table(o.table)
	if !live {
		return explainFile(a, t, o)
	}
	by := &explain.Explainer{Config: cfg, Clients: clients, Catalog: tables, Table: t, ShowData: o.showData,
		Say: func(line string) { fmt.Fprintln(a.Errs, line) }}
	if o.key != "" {
		return explainKey(ctx, a, by, o.key)
	}
	return explainRow(ctx, a, by, row)
}

// oneTarget reports whether all tables have the same target.
func oneTarget(cfg *config.Config) bool {
	for i := range cfg.Tables {
		if cfg.Tables[i].Target != cfg.Tables[0].Target {
			return false
		}
	}
	return true
}

func explainKey(ctx context.Context, a *cli.App, by *explain.Explainer, key string) error {
	found, err := by.Key(ctx, key)
	if err != nil {
		return err
	}
	found.Schema = cli.Schema
	if a.JSON {
		return verdictCode(&found.Verdict, a.PrintJSON(found))
	}
	a.Printed = true
	render.Item(a.Out, found)
	return verdictCode(&found.Verdict, nil)
}

func explainRow(ctx context.Context, a *cli.App, by *explain.Explainer, row []byte) error {
	found, err := by.Row(ctx, row)
	if err != nil {
		return err
	}
	found.Schema = cli.Schema
	if a.JSON {
		return verdictCode(&found.Verdict, a.PrintJSON(found))
	}
	a.Printed = true
	render.Row(a.Out, found)
	return verdictCode(&found.Verdict, nil)
}

// verdictCode returns exit code 4 for what is not good, after everything was printed.
func verdictCode(v *explain.Verdict, err error) error {
	if err == nil && !v.Good() {
		return failure.Reported(failure.Different)
	}
	return err
}

// explanation is what explain --json prints of a file: the steps, and once more the parts of the
// first row, for scripts.
type explanation struct {
	Schema int    `json:"schema"`
	Table  string `json:"table"`
	Target string `json:"target"`
	*transform.Steps
	Row     string                 `json:"row,omitempty"`
	Class   string                 `json:"class,omitempty"`
	Cells   []transform.StepCell   `json:"cells"`
	Deletes []transform.StepDelete `json:"deletes"`
}

// explainFile prints the steps of an item or record in a file.
func explainFile(a *cli.App, t *catalog.Table, o *explainFlags) error {
	steps, err := explain.Steps(t, o.item, o.record)
	if err != nil {
		return err
	}
	ex := explanation{
		Schema: cli.Schema, Table: t.Source, Target: t.Target, Steps: steps,
		Cells: []transform.StepCell{}, Deletes: []transform.StepDelete{},
	}
	for i := range steps.Rows {
		if r := &steps.Rows[i]; r.Cells == nil {
			r.Cells = []transform.StepCell{} // in JSON [], not null
		}
	}
	if len(steps.Rows) > 0 {
		first := steps.Rows[0]
		ex.Row, ex.Class, ex.Cells, ex.Deletes = first.Row, first.Class, first.Cells, append(ex.Deletes, first.Deletes...)
	}
	if a.JSON {
		err = a.PrintJSON(ex)
	} else {
		a.Print("%s", render.Explain(t.Target, steps))
	}
	if err == nil && steps.Code != "" {
		return failure.With(failure.Different, "in a run this change would become a dead letter",
			fmt.Errorf("the mapping refuses it: %s (%s)", steps.Refused, steps.Code))
	}
	return err
}
