package status

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/price"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestCostOfWhatWasCounted: 44 idle shards that are read once a second cost 23.13 dollars a month.
func TestCostOfWhatWasCounted(t *testing.T) {
	before := CostCounts{StreamReads: 1_000, ReadUnits: 10, Writes: 7, RowsRead: 3}
	now := CostCounts{StreamReads: 1_000 + 44*600, ReadUnits: 10 + 5*600, Writes: 7 + 100*600, RowsRead: 3 + 50*600}
	c := CostBetween(before, now, 600)
	if want := (price.Rates{StreamReads: 44, ReadUnits: 5, Writes: 100, RowsRead: 50}); c.Rates != want {
		t.Errorf("%+v, want %+v", c.Rates, want)
	}
	near(t, "stream reads", c.Dollars.StreamReads, 23.1264)
	near(t, "read units", c.Dollars.ReadUnits, 1.6425)
	near(t, "nodes", c.Nodes, (100/17000.+100/14000.+50/17000.)/0.7)
	near(t, "dollars of the nodes", c.Dollars.Nodes, c.Nodes*474.5)
	if c.Seconds != 600 || c.Counts != now {
		t.Errorf("%+v", c)
	}
	if c := CostBetween(before, now, 0.9); c != nil {
		t.Errorf("a rate of less than a second: %+v", c)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"measured_s":600`, `"stream_reads_per_s":44`, `"read_units_per_s":5`,
		`"bigtable_writes_per_s":100`, `"bigtable_rows_read_per_s":50`, `"since_start":{"stream_reads":27400,`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
}

// TestTotalCountsATargetOnce, and leaves out what is not measured.
func TestTotalCountsATargetOnce(t *testing.T) {
	cost := func(reads, writes, seconds float64) *Cost {
		return &Cost{Seconds: seconds, Rates: price.Rates{StreamReads: reads, Writes: writes}}
	}
	copying := cost(2, 10, 3600)
	copying.Passing = true
	got := Total([]Table{
		{Source: "A", Target: "x", Cost: copying}, {Source: "B", Target: "x", Cost: cost(3, 10, 60)},
		{Source: "C", Target: "y", Cost: cost(4, 1, 120)}, {Source: "D", Target: "z"},
	})
	if want := (price.Rates{StreamReads: 9, Writes: 11}); got.Rates != want || got.Tables != 4 || got.Measured != 3 ||
		got.Seconds != 60 || !got.Passing {
		t.Errorf("%+v", got)
	}
	near(t, "dollars", got.Dollars.Total, got.Month().Total)
	near(t, "nodes", got.Nodes, got.NodeShare())
	if none := Total([]Table{{Source: "D"}}); none.Measured != 0 || none.Dollars.Total != 0 {
		t.Errorf("nothing is measured: %+v", none)
	}
}
