package worker

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// item turns items into writes, one at a time. Its memory is used again for each.
type item struct {
	w       *Worker
	keys    *change.KeyReader
	key     []byte
	decoder change.Decoder
	write   transform.Write
}

func newItem(w *Worker) *item { return &item{w: w, keys: change.NewKeyReader(w.schema)} }

// written counts the rows of an item.
type written struct{ rows, skipped int }

// copy makes the rows of an item durable: each is written, or holds the item at the order's version
// or later.
func (x *item) copy(ctx context.Context, text []byte, fresh func() error) (n written, err error) {
	if x.key, err = x.keys.Of(x.key[:0], text); err != nil {
		return n, fmt.Errorf("read key: %w", err)
	}
	r := transform.Resync{Keys: x.key, Item: text, Version: x.w.order.Version, First: x.w.order.First}
	p := x.w.program
	x.decoder.Reset()
	// The daemon refuses an order for a mapping that reads rows first; another build of it may have
	// accepted the order.
	if read, err := p.RowsToRead(&x.decoder, &r); err != nil || len(read) > 0 {
		if err == nil {
			err = &errOther{"the mapping needs rows to be read before they are written: `replicator copy takeback`"}
		}
		return n, err
	}
	x.decoder.Reset()
	if err := p.Resync(&x.decoder, &r, &x.write); err != nil || len(x.write.Rows) == 0 {
		return n, err
	}
	n.rows, n.skipped, err = x.w.client.CopyItem(ctx, x.w.order.Target, &x.write, fresh)
	if err != nil && !handsBack(err) {
		err = bigtable.Explain(err)
	}
	return n, err
}
