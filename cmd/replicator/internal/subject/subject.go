// Package subject reads what `replicator explain` explains: an item, a record of DynamoDB Streams, or the item with a
// key.
package subject

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// Options name what is explained: one of a file with an item, a file with a record, and a key.
type Options struct {
	Table, Item, Record, Key string
	ShowData                 bool // with Key: the steps show the item's values
}

// Steps returns the steps of the item or record that the flags name.
func Steps(
	ctx context.Context, src *source.Source, t *catalog.Table, o Options,
) (*transform.Steps, error) {
	if o.Record != "" {
		return stepsOfRecord(t, o.Record)
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
	if o.Key != "" && !o.ShowData {
		t.Program.Hide(steps, img)
	}
	return steps, nil
}

// readItem returns the item in DynamoDB JSON: from a file, or from the table by its key.
func readItem(ctx context.Context, src *source.Source, t *catalog.Table, o Options) ([]byte, error) {
	if o.Item != "" {
		return readInput(o.Item)
	}
	raw, err := src.Item(ctx, t.Source, []byte(o.Key))
	if err != nil {
		return nil, exit.Source(fmt.Errorf("read item: %w", err))
	}
	if raw == nil {
		return nil, &exit.Error{Code: exit.CodeRuntime, Err: errors.New("the table has no item with this key"),
			Hint: "a key names all key attributes, with their types"}
	}
	return raw, nil
}

// stepsOfRecord explains a record of the stream, as GetRecords or Lambda show it.
func stepsOfRecord(t *catalog.Table, file string) (steps *transform.Steps, err error) {
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
