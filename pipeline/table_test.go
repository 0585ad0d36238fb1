package pipeline

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestLostLogForgetsWhatIsKnownOfRows(t *testing.T) {
	p := New(Options{Tables: []Table{{Source: "Orders", Target: "orders"}}}, nil, nil, nil, zap.NewNop(), nil)
	table := p.tables[0]
	now := time.Now()
	insert := &change.Change{Op: change.Insert, New: make([]byte, 1<<20)}
	wide := transform.Row{Key: []byte("wide"), Class: transform.ClassD, Cells: []transform.Cell{{Family: "d",
		Value: make([]byte, 90<<20)}}}
	table.stats.Rows.Wrote(now, &transform.Write{Rows: []transform.Row{wide}}, insert, insert)
	for range 2000 {
		table.stats.Rows.Wrote(now, &transform.Write{Rows: []transform.Row{{Key: []byte("hot"), Class: transform.ClassR}}},
			insert, insert)
	}
	show := func(now time.Time) string {
		return fmt.Sprint(table.stats.Rows.Hottest(now), table.stats.Rows.LargestGrowth())
	}
	const window = 10 * time.Second
	if got := show(now.Add(window)); got != fmt.Sprint(200, 90<<20) {
		t.Fatalf("shown before: %s", got)
	}
	table.endLife(outcome.OfTable(t.Context(), queue.ErrOutcomeUnknown), nil)
	if got := show(now.Add(3 * window)); got != fmt.Sprint(0, 90<<20) {
		t.Errorf("shown between two lives: %s, want no writes and a row that is as large as before", got)
	}
	table.endLife(outcome.OfTable(t.Context(), queue.ErrLost), nil)
	if got := show(now.Add(3 * window)); got != "0 0" {
		t.Errorf("shown after another owner held the log: %s; it may have deleted them", got)
	}
}
