package explain

import (
	"fmt"
	"io"
	"os"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/transform"
)

// Steps returns the steps of the item in one file, or of the record in the other; the other name is
// empty.
func Steps(t *catalog.Table, item, record string) (*transform.Steps, error) {
	if record != "" {
		return stepsOfRecord(t, record)
	}
	raw, err := readInput(item)
	if err != nil {
		return nil, err
	}
	var d change.Decoder
	img, err := d.Image(raw)
	if err != nil {
		typed, plainErr := typedItem(raw)
		if plainErr == nil {
			img, err = d.Image(typed)
		}
	}
	if err != nil {
		return nil, failure.Usagef(`for example {"pk":{"S":"hats"},"price":{"N":"12.5"}}, or {"pk":"hats","price":12.5}`,
			"read item: %w", err)
	}
	return t.Program.Explain(img), nil
}

// stepsOfRecord explains a record of the stream, as GetRecords or Lambda show it.
func stepsOfRecord(t *catalog.Table, file string) (steps *transform.Steps, err error) {
	raw, err := readInput(file)
	if err != nil {
		return nil, err
	}
	rec, err := change.ScanRecord(raw)
	if err != nil {
		return nil, failure.Usagef("one record, as GetRecords returns it", "read record: %w", err)
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
		return nil, failure.Usagef("", "read input: %w", err)
	}
	return data, nil
}
