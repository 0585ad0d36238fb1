package admin

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestPagesShowWhatTablesCost: a line for each, and the sum; of what is not measured no number.
func TestPagesShowWhatTablesCost(t *testing.T) {
	cost := status.CostBetween(status.CostCounts{},
		status.CostCounts{StreamReads: 44 * 600, ReadUnits: 1200, Writes: 60_000}, 600)
	cost.Passing = true
	running := func(name string, c *status.Cost) status.Table {
		return status.Table{Source: name, Target: name, State: "running", Retention: -1, Cost: c}
	}
	tables := []status.Table{running("Orders", cost), running("Users", nil)}
	s := pipeline.Summarize("shop", tables)
	var front, table, other, none bytes.Buffer
	now := time.Now()
	empty := pipeline.Summarize("shop", tables[1:])
	for out, write := range map[*bytes.Buffer]func() error{
		&front: func() error { return writeFront(&front, &s, &pipeline.Past{}, "v1", now) },
		&table: func() error { return writeTable(&table, &s, &tables[0], TablePage{}, "v1", now) },
		&other: func() error { return writeTable(&other, &s, &tables[1], TablePage{}, "v1", now) },
		&none:  func() error { return writeFront(&none, &empty, &pipeline.Past{}, "v1", now) },
	} {
		if err := write(); err != nil {
			t.Fatal(out, err)
		}
	}
	for page, parts := range map[*bytes.Buffer][]string{
		&front: {
			`<td data-label="A month" class="number">$32.61</td>`,
			`<td data-label="A month" class="number">` + unknown + `</td>`,
			`Together about $32.61 a month, measured for 10 m 00 s of 1 of 2 tables, with a copy or a resync, which ends; `,
		},
		&table: {
			`<dt>Cost a month</dt><dd>about $32.61: stream reads $23.13, read units $0.66, ` +
				`share of Bigtable&#39;s nodes $8.83; measured for 10 m 00 s, with a copy or a resync, which ends</dd>`,
		},
		&other: {`<dt>Cost a month</dt><dd>` + unknown + `</dd>`},
	} {
		for _, part := range parts {
			if !strings.Contains(page.String(), part) {
				t.Errorf("no %s in\n%s", part, page)
			}
		}
	}
	for _, part := range []string{"A month", "Together"} {
		if strings.Contains(none.String(), part) {
			t.Errorf("nothing is measured, and the page has %q", part)
		}
	}
}
