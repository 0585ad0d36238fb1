package admin

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/price"
)

// costText returns what a table costs in a month.
func costText(c *status.Cost) string {
	if c == nil {
		return unknown
	}
	return dollars(c.Dollars.Total)
}

// costFact returns what a table costs in a month, of what, and over what time that was measured.
func costFact(c *status.Cost) string {
	if c == nil {
		return unknown
	}
	d := &c.Dollars
	text := fmt.Sprintf("about %s: stream reads %s, read units %s, share of Bigtable's nodes %s; measured for %s",
		dollars(d.Total), dollars(d.StreamReads), dollars(d.ReadUnits), dollars(d.Nodes), periodText(c.Seconds))
	if c.Passing {
		text += ", with a copy or a resync, which ends"
	}
	return text
}

// totalCost returns what all tables cost in a month; "" if nothing was measured.
func totalCost(tables []status.Table) string {
	t := status.Total(tables)
	if t.Measured == 0 {
		return ""
	}
	text := fmt.Sprintf("Together about %s a month, measured for %s", dollars(t.Dollars.Total), periodText(t.Seconds))
	if t.Measured < t.Tables {
		text += fmt.Sprintf(" of %d of %d tables", t.Measured, t.Tables)
	}
	if t.Passing {
		text += ", with a copy or a resync, which ends"
	}
	return text + "; at list prices, with Bigtable's nodes by the share that is used: `replicator status --cost` has more."
}

// dollars returns dollars with cents.
func dollars(d float64) string { return "$" + humanize.FormatFloat("#,###.##", price.Cents(d)) }
