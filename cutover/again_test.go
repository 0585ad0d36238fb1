package cutover_test

import (
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// Attack 88. The first cutover is certified, the application moves and writes to Bigtable, and is
// moved back. What it wrote is in no log, so the second cutover must not rest on the comparison
// from before the first fence: it compares all items, and refuses until they are mended.
func TestSecondCutoverDoesNotRestOnAComparisonFromBeforeTheFirst(t *testing.T) {
	w := newWorld(t, 991, "")
	w.Window = "1h" // so that nothing is trimmed, as with the replay window of a default configuration
	w.Configure("{source: Orders, target: orders, backfill: none}")
	w.d = w.Run()
	w.put(5, "1")
	w.verifyForCutover()
	if _, said, err := w.cutover(cutover.Options{}); err != nil || !strings.Contains(said, "that have changed since") {
		t.Fatalf("first cutover: %v\n%s", err, said)
	}
	m := cloud.NewMutation()
	m.Set("d", "n", cloud.Time(w.Clock.Now().Add(time.Second)), []byte("99"))
	w.mutate("hats#0", m)
	w.unplant("hats#1")
	w.undo()
	w.Put("Orders", "hats", "4", `"n":{"N":"2"}`)
	w.d.Settle()

	_, said, err := w.cutover(cutover.Options{})
	if err == nil || !strings.Contains(err.Error(), "2 items differ") ||
		!strings.Contains(said, "the last full one began before the undo of a fence") {
		t.Errorf("second cutover: %v\n%s", err, said)
	}
	_, s := w.Pair("Orders")
	var found []report.Table
	w.While("all items are compared", func() {
		found, err = audit.Full(t.Context(), w.Config, s, audit.Options{Strong: true})
	})
	if err != nil || report.Worst(found) != report.Different || found[0].Different != 2 {
		t.Errorf("a full comparison behind the second fence: %+v, %v", found, err)
	}
}

// undo takes the fence of the table away.
func (w *world) undo() {
	w.t.Helper()
	clients := w.Clients()
	q, err := clients.Queue(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	undone, err := cutover.Undo(w.t.Context(), q, w.Sink(clients), "shop", []string{"Orders"})
	if err != nil || len(undone) != 1 {
		w.t.Fatalf("undo: %+v, %v", undone, err)
	}
}
