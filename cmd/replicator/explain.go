package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	table, item, record, key string
	showData                 bool
}

// explainCommand returns the command `replicator explain`.
func (a *app) explainCommand() *cobra.Command {
	var o explainOptions
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
	f.StringVar(&o.table, "table", "", "source table (default: the only one)")
	f.StringVar(&o.item, "item", "", `file with an item: {"pk":{"S":"hats"},…}`)
	f.StringVar(&o.record, "record", "", "file with a record of DynamoDB Streams")
	f.StringVar(&o.key, "key", "", `key of an item in the table: {"pk":{"S":"hats"},"sk":{"S":"fedora"}}`)
	f.BoolVar(&o.showData, "show-data", false, "with --key: print the values too")
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
func (a *app) explain(ctx context.Context, o explainOptions) error {
	if o.key != "" {
		var d change.Decoder
		if _, err := d.Image([]byte(o.key)); err != nil {
			return exit.Usage(`for example --key '{"pk":{"S":"hats"},"sk":{"S":"fedora"}}'`, "read key: %w", err)
		}
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if o.table == "" && len(cfg.Tables) == 1 {
		o.table = cfg.Tables[0].Source
	}
	if o.table == "" {
		return exit.Usage("--table NAME", "%s has %d tables: which one?", a.configPath, len(cfg.Tables))
	}
	if _, err := catalog.Select(cfg, o.table); err != nil {
		return err
	}
	clients := a.clients(cfg)
	defer clients.Close()
	var src *source.Source
	if o.key != "" || !catalog.KeysDeclared(cfg) {
		if src, err = clients.Source(ctx); err != nil {
			return err
		}
	}
	// All tables are compiled, because a row's class depends on all that write it.
	tables, err := a.catalog(ctx, cfg, src)
	if err != nil {
		return err
	}
	t := tables.Table(o.table)
	steps, err := explainInput(ctx, src, t, o)
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

// explainInput returns the steps of the item or record that the flags name.
func explainInput(
	ctx context.Context, src *source.Source, t *catalog.Table, o explainOptions,
) (*transform.Steps, error) {
	if o.record != "" {
		return explainRecord(t, o.record)
	}
	raw, err := readItem(ctx, src, t, o)
	if err != nil {
		return nil, err
	}
	var d change.Decoder
	img, err := d.Image(raw)
	if err != nil {
		return nil, exit.Usage(`for example {"pk":{"S":"hats"},"price":{"N":"12.5"}}`, "read item: %w", err)
	}
	steps := t.Program.Explain(img)
	if o.key != "" && !o.showData {
		t.Program.Hide(steps, img)
	}
	return steps, nil
}

// readItem returns the item in DynamoDB JSON: from a file, or from the table by its key.
func readItem(ctx context.Context, src *source.Source, t *catalog.Table, o explainOptions) ([]byte, error) {
	if o.item != "" {
		return readInput(o.item)
	}
	raw, err := src.Item(ctx, t.Source, []byte(o.key))
	if err != nil {
		return nil, exit.Source(fmt.Errorf("read item: %w", err))
	}
	if raw == nil {
		return nil, &exit.Error{Code: exit.CodeRuntime, Err: errors.New("the table has no item with this key"),
			Hint: "a key names all key attributes, with their types"}
	}
	return raw, nil
}

// explainRecord explains a record of the stream, as GetRecords or Lambda show it.
func explainRecord(t *catalog.Table, file string) (steps *transform.Steps, err error) {
	raw, err := readInput(file)
	if err != nil {
		return nil, err
	}
	rec, err := change.ScanRecord(raw)
	if err != nil {
		return nil, exit.Usage("one record, as GetRecords returns it", "read record: %w", err)
	}
	rec.Version = change.Version(rec.Created)
	wire := change.AppendRecords(nil, []change.Record{rec})
	err = change.DecodeRecords(wire, change.Feed{Stream: t.Info.StreamARN}, func(ch *change.Change) error {
		steps, err = t.Program.ExplainChange(ch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("explain record: %w", err)
	}
	return steps, nil
}

// readInput reads a file, or standard input for -.
func readInput(file string) ([]byte, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(os.Stdin)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, exit.Usage("", "read input: %w", err)
	}
	return data, nil
}
