package status

import (
	"math"

	"github.com/tailrace-cdc/replicator/price"
)

// Cost is what a table uses of both clouds, as the process counts that carries it, and what that
// costs if it goes on for a month.
type Cost struct {
	Seconds float64 `json:"measured_s"` // the time of which the rates are the mean
	price.Rates
	// Passing: a copy or a resync ran in that time, which ends and is no cost of every month.
	Passing bool `json:"includes_copy,omitempty"`
	// Nodes is the share of nodes of Bigtable that rows of 1 KB take. Writes, RowsRead and Nodes
	// count the target, so that tables with the same target have the same.
	Nodes   float64     `json:"bigtable_nodes"`
	Dollars price.Month `json:"dollars_a_month"`
	Counts  CostCounts  `json:"since_start"`
}

// CostCounts is what was counted since the start of the process.
type CostCounts struct {
	StreamReads uint64  `json:"stream_reads"`
	ReadUnits   float64 `json:"read_units"`
	Writes      uint64  `json:"bigtable_writes"`
	RowsRead    uint64  `json:"bigtable_rows_read"`
}

// CostBetween returns the cost of what was counted in so many seconds; nil if they are too few to
// compute a rate.
func CostBetween(before, now CostCounts, seconds float64) *Cost {
	if seconds < 1 {
		return nil
	}
	rate := func(n float64) float64 { return n / seconds }
	c := &Cost{Seconds: math.Round(seconds), Counts: now, Rates: price.Rates{
		StreamReads: rate(float64(now.StreamReads - before.StreamReads)),
		ReadUnits:   rate(now.ReadUnits - before.ReadUnits),
		Writes:      rate(float64(now.Writes - before.Writes)),
		RowsRead:    rate(float64(now.RowsRead - before.RowsRead)),
	}}
	c.Nodes, c.Dollars = c.NodeShare(), c.Month()
	return c
}

// TotalCost is what the tables cost together.
type TotalCost struct {
	Tables   int     `json:"tables"`
	Measured int     `json:"tables_measured"` // the others are in no sum
	Seconds  float64 `json:"measured_s"`      // of the table that was measured for the shortest time
	price.Rates
	Passing bool        `json:"includes_copy,omitempty"`
	Nodes   float64     `json:"bigtable_nodes"`
	Dollars price.Month `json:"dollars_a_month"`
}

// Total returns the sum of what is measured. A target counts once, whichever tables share it.
func Total(tables []Table) TotalCost {
	t := TotalCost{Tables: len(tables)}
	targets := map[string]bool{}
	for i := range tables {
		c := tables[i].Cost
		if c == nil {
			continue
		}
		if t.Measured++; t.Measured == 1 || c.Seconds < t.Seconds {
			t.Seconds = c.Seconds
		}
		rates := c.Rates
		if targets[tables[i].Target] {
			rates.Writes, rates.RowsRead = 0, 0
		}
		targets[tables[i].Target] = true
		t.Rates, t.Passing = t.Add(rates), t.Passing || c.Passing
	}
	t.Nodes, t.Dollars = t.NodeShare(), t.Month()
	return t
}
