package control

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tailrace-cdc/replicator/queue/request"
)

// The message about a wrong line says that the items of the lines before it are resynced.
func TestItemsBeforeAWrongOneAreAskedFor(t *testing.T) {
	wrong := errors.New("line 4: no key")
	items := func(yield func(request.Item, error) bool) {
		for i := range 3 {
			if !yield(request.Item{Key: fmt.Appendf(nil, `{"pk":{"S":"%d"}}`, i)}, nil) {
				return
			}
		}
		yield(request.Item{}, wrong)
	}
	asked := 0
	err := (&Requester{}).cut(request.Resync, items, func(c *request.Chunk) error {
		asked += len(c.Items)
		return nil
	})
	if !errors.Is(err, wrong) || asked != 3 {
		t.Errorf("asked for %d items: %v; want 3, and the error of the line", asked, err)
	}
}
