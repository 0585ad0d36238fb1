package apply

import (
	"bytes"
	"context"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// isLettered reports whether a dead letter of Bigtable stands for all rows of the item. A letter
// behind which the rows were made true does not: what remains of it is what outlives the item.
func (x *resyncing) isLettered() bool {
	return slices.ContainsFunc(x.letters, func(l *heldLetter) bool {
		return l.Sink == checkpoint.SinkBigtable && !l.applied && l.Resynced == 0
	})
}

// dropOfCopies deletes the letters of copies for an item that has a letter of its own now: one
// refused item has one letter. A retry of the item's own letter does all that theirs would do. It
// changes nothing when it is repeated, as a replay of the change does after a crash between the
// two.
func (w *worker) dropOfCopies(ctx context.Context, c *change.Change) error {
	if !w.letters.has(checkpoint.SinkBigtable, c) {
		return nil // it was dropped
	}
	var gone []string
	for _, ref := range w.letters.of(c.KeyHash, false) {
		if !ref.copied {
			continue
		}
		l, err := w.letters.get(ctx, ref)
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		same, err := w.sameItem(l.Keys, c.Keys)
		if err != nil {
			return err
		}
		if same {
			gone = append(gone, ref.id)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	_, err := w.letters.drop(ctx, c.KeyHash, gone)
	return err
}

// sameItem reports whether two keys belong to the same item.
func (w *worker) sameItem(a, b []byte) (bool, error) {
	one, err := w.canonical(a)
	if err != nil {
		return false, err
	}
	other, err := w.canonical(b)
	return bytes.Equal(one, other), err
}
