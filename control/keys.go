package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
)

// errEnough ends the reading of an export when no more of its items are taken.
var errEnough = errors.New("enough")

// ChangedKeys yields the items that changed in the window of an incremental export, whatever became
// of them.
func ChangedKeys(ctx context.Context, e *export.Export) iter.Seq2[request.Item, error] {
	return func(yield func(request.Item, error) bool) {
		for i := range e.Files {
			err := e.ReadFile(ctx, i, 0, func(l export.Line) error {
				if !yield(request.Item{Key: bytes.Clone(l.Keys)}, nil) {
					return errEnough
				}
				return nil
			})
			if errors.Is(err, errEnough) {
				return
			}
			if err != nil {
				yield(request.Item{}, fmt.Errorf("read export: %w", err))
				return
			}
		}
	}
}

// OpenChanged opens an incremental export of a table for its keys.
func OpenChanged(ctx context.Context, url string, want export.Want) (*export.Export, error) {
	want.KeysOnly = true
	e, err := export.Open(ctx, url, want)
	if err != nil {
		return nil, source.Explain(err)
	}
	if e.Kind != export.Incremental {
		return nil, failure.Usagef(
			"`replicator repair --table` without --from-export compares the whole table; an incremental "+
				"export is made with --export-type INCREMENTAL_EXPORT",
			"%s is a full export: it does not say which items have changed or are gone", url)
	}
	return e, nil
}
