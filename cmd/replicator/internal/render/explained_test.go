package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/explain"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestRequestsOfAnItemArePrinted(t *testing.T) {
	item := &explain.Item{Table: "Orders", Key: []byte(`{"pk":{"S":"hats"}}`), Absent: true,
		Steps: &transform.Steps{}, Log: &explain.History{}, Verdict: explain.Verdict{Sentence: "equal."}}
	var none, one strings.Builder
	render.Item(&none, item)
	item.Requests = []explain.Request{{ID: "r1-0", What: "resync", By: "ann@laptop", Asked: time.UnixMilli(0)}}
	render.Item(&one, item)
	if text := none.String(); !strings.Contains(text, "\nNo requests for it.\n") ||
		!strings.HasSuffix(text, "\nequal.\n") {
		t.Errorf("without requests:\n%s", text)
	}
	if text := one.String(); strings.Contains(text, "No requests") ||
		!strings.Contains(text, "\nRequest r1-0 waits since 1970-01-01 00:00:00 UTC: resync, asked by ann@laptop\n") {
		t.Errorf("with a request:\n%s", text)
	}
}

func TestOwnersOfCellsArePrinted(t *testing.T) {
	row := &explain.Row{Row: "hats", Target: "orders", Items: make([]explain.RowItem, 1)}
	for owner, want := range map[string]string{
		explain.OwnedByItem:    "d:x  item 1",
		explain.OwnedMaybe:     "d:x  unknown: it may be of two",
		explain.OwnedByNobody:  "d:x  foreign: no item of the row can own it",
		explain.OwnedByAnother: "d:x  of a table that is not configured",
	} {
		row.Cells = []explain.OwnedCell{{Family: "d", Qualifier: "x", Owner: owner, Why: "it may be of two"}}
		var out strings.Builder
		if render.Row(&out, row); !strings.Contains(out.String(), want) {
			t.Errorf("%s: no %q in\n%s", owner, want, out.String())
		}
	}
}

// TestRefusedChangeExplainsItsRow: the cells of a refused item are not extra, and the row names the
// letter.
func TestRefusedChangeExplainsItsRow(t *testing.T) {
	item := &explain.Item{Target: "orders", Steps: &transform.Steps{}, Absent: true, Stored: []explain.StoredRow{{
		Row: "hats", Guard: 1000, Cells: []explain.StoredCell{{Family: "d", Qualifier: "x", State: explain.CellOutdated}},
		Refused: &explain.RefusedChange{Letter: "ab12", Version: 2000, Reason: "n is no integer"},
	}}}
	var out strings.Builder
	render.Item(&out, item)
	for _, want := range []string{"the mapping refuses the item as it is now\n", "d:x  outdated",
		"the change at version 2000 (1970-01-01 00:00:02 UTC) was refused, so the row is as before it: n is no integer " +
			"(`replicator dlq show ab12`)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
