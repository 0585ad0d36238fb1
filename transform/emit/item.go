package emit

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// ItemOf returns how guards and markers name the item with these keys. It fills w.
func ItemOf(p *ir.Program, d *change.Decoder, keys []byte, w *Write) (Item, error) {
	err := Change(p, d, &change.Change{Op: change.Remove, Keys: keys}, w)
	return w.Item, ignoreRefusal(err) // a removal that needs its old image is refused behind the item's name
}
