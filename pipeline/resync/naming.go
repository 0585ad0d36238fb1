package resync

import (
	"bytes"
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/transform"
)

// named holds the rows of the target with guards that name requested items: by chunk, then by item.
type named struct{ rows map[string][][][]byte }

// nameRows finds the rows that may hold the items of a chunk, in a table with keys that do not
// determine the rows: an item that moved in a gap is still in its old row. That takes one reading
// of the whole target, so the result serves all waiting chunks of the same command; chunks that are
// stored later need another reading. A row that an item enters after the reading is written by the
// stream and needs no repair.
//
// Retries of dead letters do not need this: the images in the letters show the rows.
func (r *Requests) nameRows(ctx context.Context, store chunks, c *request.Chunk) error {
	if c.What != request.Resync || r.Program.KeysShowRows() {
		r.named.rows = nil
		return nil
	}
	if r.named.rows[c.ID] != nil {
		return nil
	}
	waiting, err := store.Waiting(ctx, c)
	if err != nil {
		return err
	}
	n := &naming{r: r, rows: map[string][][][]byte{}}
	for _, c := range waiting {
		n.rows[c.ID] = make([][][]byte, len(c.Items))
		for i := range c.Items {
			n.add(c, i)
		}
	}
	unknown, err := r.Client.RowsNaming(ctx, r.Target, n.items, n.found)
	if err != nil {
		return fmt.Errorf("look for the rows of requested items: %w", err)
	}
	if unknown > 0 {
		r.Logger.Warn("guards are sealed with a secret that is not configured: rows of requested items may be missed",
			zap.Int("guards", unknown))
	}
	r.named.rows = n.rows
	return nil
}

// naming is one reading of the target for the items of some chunks.
type naming struct {
	r     *Requests
	items []transform.Item
	at    [][]place // of each item: it may be requested more than once
	rows  map[string][][][]byte
	known map[string]int // index in items by key

	dec   change.Decoder
	write transform.Write
}

// place is an item of a chunk.
type place struct {
	chunk string
	item  int
}

// add adds an item of a chunk. An item without a valid key is left out: doing the chunk reports it.
func (n *naming) add(c *request.Chunk, i int) {
	key, err := canonicalKey(n.r.Info.Schema, c.Items[i].Key)
	if err != nil {
		return
	}
	at, ok := n.known[string(key)]
	if !ok {
		n.dec.Reset()
		it, err := n.r.Program.ItemOf(&n.dec, key, &n.write)
		if err != nil {
			return
		}
		it.Key = bytes.Clone(it.Key)
		if n.known == nil {
			n.known = map[string]int{}
		}
		at = len(n.items)
		n.known[string(key)] = at
		n.items, n.at = append(n.items, it), append(n.at, nil)
	}
	n.at[at] = append(n.at[at], place{c.ID, i})
}

// found notes a row that names an item.
func (n *naming) found(item int, row []byte) error {
	row = bytes.Clone(row)
	for _, p := range n.at[item] {
		n.rows[p.chunk][p.item] = append(n.rows[p.chunk][p.item], row)
	}
	return nil
}
