package apply

import (
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestNoItemIsWrittenBehindAFence: Rule 12. Whatever asks for it, the rows may belong to the
// application.
func TestNoItemIsWrittenBehindAFence(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = plain })
	x.Put("Orders", "p", "1", `"v":{"N":"1"}`)
	l := x.begin()
	l.settle()
	item := l.readLaterWith("1", 0)
	l.sink.fence = &checkpoint.Fence{ID: "f", Seq: 1}
	if out, err := l.sink.Resync(t.Context(), item); !errors.Is(err, ErrFenced) || out.Written > 0 {
		t.Errorf("%+v, %v", out, err)
	}
}
