package transform

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/emit"
)

// ItemOf returns how guards and markers name the item with these keys, which are typed JSON. It
// fills w, and the Item is valid until the next call that fills w.
func (p *Program) ItemOf(d *change.Decoder, keys []byte, w *Write) (Item, error) {
	return emit.ItemOf(p.prog, d, keys, w)
}
