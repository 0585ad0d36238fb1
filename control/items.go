package control

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
)

// ItemsResync selects which items of a table are resynced: the items of Keys or of Export.
type ItemsResync struct {
	Table  string
	Keys   string // file, - for stdin
	Export string // URL of an incremental export
	Wait   bool
	Warn   io.Writer // receives what users must know beside the result; may be nil
}

// Run requests the resync of the items, and waits for it with Wait.
func (r *ItemsResync) Run(ctx context.Context, requester *Requester, cfg *config.Config) (*RequestTotal, error) {
	if _, err := catalog.Select(cfg, r.Table); err != nil {
		return nil, err
	}
	in := io.ReadCloser(os.Stdin)
	if r.Keys != "" && r.Keys != "-" {
		f, err := os.Open(r.Keys)
		if err != nil {
			return nil, failure.Usagef("--keys names a file with one key per line, or - for stdin", "%w", err)
		}
		defer f.Close()
		in = f
	}
	items, err := r.items(ctx, requester, cfg, in)
	if err != nil {
		return nil, err
	}
	if r.Wait {
		return requester.Do(ctx, request.Resync, items)
	}
	return requester.Send(ctx, request.Resync, items)
}

func (r *ItemsResync) items(
	ctx context.Context, requester *Requester, cfg *config.Config, in io.Reader,
) (iter.Seq2[request.Item, error], error) {
	src, err := requester.Clients.Source(ctx)
	if err != nil {
		return nil, err
	}
	info, err := src.Table(ctx, r.Table)
	if err != nil {
		return nil, source.Explain(err)
	}
	if r.Keys != "" {
		return KeysOf(in, r.Keys, info.Schema), nil
	}
	e, err := OpenChanged(ctx, r.Export, export.Want{TableID: info.ID, Source: src, Scratch: cfg.Scratch})
	if err != nil {
		return nil, err
	}
	if e.Wholeness != export.Whole && r.Warn != nil {
		fmt.Fprintf(r.Warn, "DynamoDB cannot be asked whether the export is whole (%s): if it was made with a filter, "+
			"items that changed are not resynced.\n", e.Unasked)
	}
	return ChangedKeys(ctx, e), nil
}
