package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/subject"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// explainCommand returns the command `replicator explain`.
func (a *app) explainCommand() *cobra.Command {
	var o subject.Options
	cmd := &cobra.Command{
		Use:   "explain (--item FILE | --record FILE | --key JSON)",
		Short: "Show which rows and cells the mapping makes of an item or a change",
		Long: `explain takes an item in DynamoDB JSON, a record of DynamoDB Streams, or the key of an item that it reads from
the table, and prints which rows, cells and deletes the mapping makes of it. FILE is - for standard input. It writes
nothing.

Exit 4 when the mapping refuses it: such a change would become a dead letter.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.explain(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.Table, "table", "", "source table (default: the only one)")
	f.StringVar(&o.Item, "item", "", `file with an item: {"pk":{"S":"hats"},…}`)
	f.StringVar(&o.Record, "record", "", "file with a record of DynamoDB Streams")
	f.StringVar(&o.Key, "key", "", `key of an item in the table: {"pk":{"S":"hats"},"sk":{"S":"fedora"}}`)
	f.BoolVar(&o.ShowData, "show-data", false, "with --key: print the values too")
	cmd.MarkFlagsOneRequired("item", "record", "key")
	cmd.MarkFlagsMutuallyExclusive("item", "record", "key")
	return cmd
}

// explanation is what explain --json prints: the steps, and once more the parts of the first row, for scripts.
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

// explain compiles the mappings, and prints the steps of the item or record.
func (a *app) explain(ctx context.Context, o subject.Options) error {
	if o.Key != "" {
		var d change.Decoder
		if _, err := d.Image([]byte(o.Key)); err != nil {
			return exit.Usage(`for example --key '{"pk":{"S":"hats"},"sk":{"S":"fedora"}}'`, "read key: %w", err)
		}
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if o.Table == "" && len(cfg.Tables) == 1 {
		o.Table = cfg.Tables[0].Source
	}
	if o.Table == "" {
		return exit.Usage("--table NAME", "%s has %d tables: which one?", a.configPath, len(cfg.Tables))
	}
	if _, err := catalog.Select(cfg, o.Table); err != nil {
		return err
	}
	clients := a.clients(cfg)
	defer clients.Close()
	var src *source.Source
	if o.Key != "" || !catalog.KeysDeclared(cfg) {
		if src, err = clients.Source(ctx); err != nil {
			return err
		}
	}
	// All tables are compiled, because a row's class depends on all that write it.
	tables, err := a.catalog(ctx, cfg, src)
	if err != nil {
		return err
	}
	t := tables.Table(o.Table)
	steps, err := subject.Steps(ctx, src, t, o)
	if err != nil {
		return err
	}
	ex := explanation{
		Schema: schema, Table: t.Source, Target: t.Target, Steps: steps,
		Cells: []transform.StepCell{}, Deletes: []transform.StepDelete{},
	}
	for i := range steps.Rows {
		if r := &steps.Rows[i]; r.Cells == nil {
			r.Cells = []transform.StepCell{} // in JSON [], not null
		}
	}
	if len(steps.Rows) > 0 {
		main := steps.Rows[0]
		ex.Row, ex.Class, ex.Cells, ex.Deletes = main.Row, main.Class, main.Cells, append(ex.Deletes, main.Deletes...)
	}
	if a.json {
		err = a.printJSON(ex)
	} else {
		a.print("%s", render.Explain(t.Target, steps))
	}
	if err == nil && steps.Code != "" {
		return &exit.Error{Code: exit.CodeDifferences, Hint: "in a run this change would become a dead letter",
			Err: fmt.Errorf("the mapping refuses it: %s (%s)", steps.Refused, steps.Code)}
	}
	return err
}
