package demo

import (
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// TestOldItemsAreInNoStream: what the tables hold at first reaches Bigtable only if it is copied.
func TestOldItemsAreInNoStream(t *testing.T) {
	sb, err := sandbox.Start(sandbox.Options{NoBigtable: true, NoNATS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	w, g := &Writer{Sandbox: sb}, &Gallery{Sandbox: sb}
	old := &Old{Sandbox: sb, Seed: 7, Catalog: 1000}
	for _, step := range []func() error{w.Create, g.Create, old.Fill} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if n := old.items[Table]; n != 1000 {
		t.Errorf("the catalogue holds %d items, want 1000: keys must differ", n)
	}
	for name, n := range old.items {
		if changes, _ := sb.Ledger.Count(name); changes != 0 || n == 0 {
			t.Errorf("%s: %d items, %d of them in the stream", name, n, changes)
		}
	}
}
