package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	table, item, record, key string
	showData                 bool
}

func (a *app) explainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain (--item FILE | --record FILE | --key JSON)",
		Short: "Say what the mapping makes of an item or a change",
		Long: `explain takes an item in DynamoDB JSON, a record of DynamoDB Streams, or the key of an item that it reads from the
table, and says which rows, cells and deletes the mapping makes of it. FILE is - for standard input. It writes nothing.

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

// explanation is what explain --json prints.
type explanation struct {
	Schema int              `json:"schema"`
	Table  string           `json:"table"`
	Target string           `json:"target"`
	Rows   []explainedRow   `json:"rows"`
	Event  *transform.Event `json:"event,omitempty"`
}

type explainedRow struct {
	Row     string          `json:"row"`
	Class   string          `json:"class"`
	Left    bool            `json:"left,omitempty"`
	Deletes []explainedDel  `json:"deletes"`
	Cells   []explainedCell `json:"cells"`
}

type explainedCell struct {
	Family    string `json:"family"`
	Qualifier string `json:"qualifier"`
	TS        *int64 `json:"ts"` // ms; null: the change's version
	Value     string `json:"value"`
}

type explainedDel struct {
	Family    string `json:"family"`
	Qualifier string `json:"qualifier,omitempty"`
	From      int64  `json:"from,omitempty"`
	To        int64  `json:"to,omitempty"`
	Row       bool   `json:"whole_row,omitempty"`
}

func (a *app) explain(ctx context.Context, o explainOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if o.table == "" && len(cfg.Tables) == 1 {
		o.table = cfg.Tables[0].Source
	}
	if o.table == "" {
		return usageError("--table NAME", "%s has %d tables: which one?", a.configPath, len(cfg.Tables))
	}
	if _, err := selected(cfg, o.table); err != nil {
		return err
	}
	src, err := a.source(ctx, cfg)
	if err != nil {
		return err
	}
	defer src.Close()
	c, err := a.oneProgram(ctx, cfg, src, o.table)
	if err != nil {
		return err
	}
	ex, err := explained(ctx, src, c, o)
	var refusal *transform.Refusal
	if errors.As(err, &refusal) {
		return &ExitError{Code: exitDifferences, Err: fmt.Errorf("the mapping refuses it: %w", err),
			Hint: "in a run this change would become a dead letter"}
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(ex)
	}
	a.printExplanation(ex)
	return nil
}

// oneProgram compiles all tables, since a row's class depends on all of them, and returns the one that is asked for.
func (a *app) oneProgram(ctx context.Context, cfg *config.Config, src *source.Source, table string) (*carried, error) {
	all, err := a.programs(ctx, cfg, src)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.Source == table {
			return c, nil
		}
	}
	return nil, usageError("", "no table %q", table)
}

func explained(ctx context.Context, src *source.Source, c *carried, o explainOptions) (*explanation, error) {
	ex := &explanation{Schema: schema, Table: c.Source, Target: c.Target, Rows: []explainedRow{}}
	var d change.Decoder
	if o.record != "" {
		return ex, explainRecord(ex, &d, c, o.record)
	}
	raw, err := theItem(ctx, src, c, o)
	if err != nil {
		return nil, err
	}
	img, err := d.Image(raw)
	if err != nil {
		return nil, usageError(`for example {"pk":{"S":"hats"},"price":{"N":"12.5"}}`, "read item: %w", err)
	}
	rows, err := c.program.Project(img)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		ex.Rows = append(ex.Rows, explainRow(&rows[i], o.key == "" || o.showData))
	}
	return ex, nil
}

func theItem(ctx context.Context, src *source.Source, c *carried, o explainOptions) ([]byte, error) {
	if o.item != "" {
		return readInput(o.item)
	}
	raw, err := src.Item(ctx, c.Source, []byte(o.key))
	if err != nil {
		return nil, sourceError(fmt.Errorf("read item: %w", err))
	}
	if raw == nil {
		return nil, &ExitError{Code: exitRuntime, Err: errors.New("the table has no item with this key"), Hint: "a key names all key attributes, with their types"}
	}
	return raw, nil
}

// explainRecord projects a change. A record as Lambda or the CLI show it is one, too.
func explainRecord(ex *explanation, d *change.Decoder, c *carried, file string) error {
	raw, err := readInput(file)
	if err != nil {
		return err
	}
	rec, err := change.ScanRecord(raw)
	if err != nil {
		return usageError("one record, as GetRecords returns it", "read record: %w", err)
	}
	rec.Version = rec.Created
	var w transform.Write
	var failed error
	err = change.DecodeRecords(change.AppendRecords(nil, []change.Record{rec}), change.Feed{Stream: c.info.StreamARN}, func(ch *change.Change) error {
		if failed = c.program.Change(d, ch, &w); failed != nil {
			return nil
		}
		for i := range w.Rows {
			ex.Rows = append(ex.Rows, explainRow(&w.Rows[i], true))
		}
		ex.Event, failed = c.program.Archive(d, ch)
		return nil
	})
	return errors.Join(err, failed)
}

func readInput(file string) ([]byte, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(os.Stdin)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, usageError("", "read input: %w", err)
	}
	return data, nil
}

func explainRow(r *transform.Row, values bool) explainedRow {
	out := explainedRow{Row: text(r.Key), Class: r.Class.String(), Left: r.Left, Deletes: []explainedDel{}, Cells: []explainedCell{}}
	if r.Exclusive {
		out.Deletes = append(out.Deletes, explainedDel{Row: true})
	}
	for _, del := range r.Deletes {
		out.Deletes = append(out.Deletes, explainedDel{Family: del.Family, Qualifier: text(del.Qualifier), From: del.From, To: del.To})
	}
	for _, c := range r.Cells {
		cell := explainedCell{Family: c.Family, Qualifier: text(c.Qualifier), Value: text(c.Value)}
		if c.Mapped {
			at := c.Time
			cell.TS = &at
		}
		if !values {
			cell.Value = fmt.Sprintf("(%d bytes; --show-data prints them)", len(c.Value))
		}
		out.Cells = append(out.Cells, cell)
	}
	return out
}

// text is bytes as people read them: as they are where they are printable, else quoted with escapes.
func text(b []byte) string {
	for _, r := range string(b) {
		if r == utf8.RuneError || r < ' ' {
			return fmt.Sprintf("%q", b)
		}
	}
	return string(b)
}

func (a *app) printExplanation(ex *explanation) {
	if len(ex.Rows) == 0 {
		a.print("%s: the mapping makes nothing of it.", ex.Table)
	}
	for _, r := range ex.Rows {
		left := ""
		if r.Left {
			left = ", which the item leaves"
		}
		a.print("%s: row %s (class %s)%s", ex.Target, r.Row, r.Class, left)
		for _, d := range r.Deletes {
			switch {
			case d.Row:
				a.print("  delete  the whole row")
			case d.To > 0:
				a.print("  delete  %s:%s from %s until %s", d.Family, d.Qualifier, millis(d.From), millis(d.To))
			default:
				a.print("  delete  %s:%s", d.Family, d.Qualifier)
			}
		}
		for _, c := range r.Cells {
			at := ""
			if c.TS != nil {
				at = " @ " + millis(*c.TS)
			}
			a.print("  set     %s:%s = %s%s", c.Family, c.Qualifier, c.Value, at)
		}
	}
	if ex.Event != nil {
		a.print("archive: event %s", ex.Event.ID)
	}
}

func millis(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
