package render

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/price"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Costs is what `status --cost --json` prints: what was measured, and what it costs in a month.
type Costs struct {
	Schema   int              `json:"schema"`
	Pipeline string           `json:"pipeline"`
	Tables   []TableCost      `json:"tables"`
	Total    status.TotalCost `json:"total"`
	Idle     IdleCosts        `json:"idle"`
	Instance *InstanceCost    `json:"bigtable,omitempty"` // absent: not known, as of an emulator
	Bytes    int64            `json:"bytes"`              // of all tables with a target, in DynamoDB; 0: not known
	Storages []price.Choice   `json:"storages,omitempty"` // what these bytes and the measured writes take
	Prices   price.List       `json:"prices"`
}

// TableCost is what one table costs.
type TableCost struct {
	Source string       `json:"source"`
	Target string       `json:"target"`
	Owner  string       `json:"owner"`
	Bytes  *int64       `json:"bytes,omitempty"` // in DynamoDB, up to six hours old; absent: not known
	Idle   price.Idle   `json:"idle"`
	Cost   *status.Cost `json:"cost"` // null: no process reports it
}

// IdleCosts is what reading all shards costs while nothing changes.
type IdleCosts struct {
	Shards  int     `json:"open_shards"`
	Reads   float64 `json:"reads_a_month"`
	Dollars float64 `json:"dollars_a_month"`
}

// InstanceCost is the instance, and what its nodes cost in a month, whatever is used of them.
type InstanceCost struct {
	bigtable.Instance
	Dollars float64 `json:"nodes_dollars_a_month"`
}

// Cost writes what the tables cost in a month.
func Cost(out io.Writer, r *Costs) error {
	fmt.Fprintf(out, "%s\n\n", costSentence(r))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TABLE\tMEASURED\tSTREAM READS/S\tREAD UNITS/S\tWRITES/S\tROWS READ/S\tNODES\t"+
		"$ READS\t$ UNITS\t$ NODES\t$ A MONTH\tWHILE IDLE")
	for i := range r.Tables {
		t := &r.Tables[i]
		measured, rest := unknown, strings.Repeat(unknown+"\t", 9)
		if c := t.Cost; c != nil {
			measured, rest = measuredText(c.Seconds), ratesText(c.Rates, c.Nodes, c.Dollars)
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", t.Source, measured, rest, idleText(&t.Idle))
	}
	if len(r.Tables) > 1 && r.Total.Measured > 0 {
		fmt.Fprintf(w, "together\t%s\t%s%d shards: %s\n", measuredText(r.Total.Seconds),
			ratesText(r.Total.Rates, r.Total.Nodes, r.Total.Dollars), r.Idle.Shards, preflight.DollarsText(r.Idle.Dollars))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write cost: %w", err)
	}
	fmt.Fprintln(out)
	for _, line := range costRemarks(r) {
		fmt.Fprintln(out, line)
	}
	if err := Storages(out, r.Bytes, r.Storages); err != nil {
		return err
	}
	p := &r.Prices
	fmt.Fprintf(out, "Assumed list prices of %s and %s: %g for 100,000 stream reads, %g for a million read units, "+
		"%g for a node and hour; docs/day-one.md says where to compare.\n",
		p.Region, p.GoogleRegion, p.StreamReads, p.MillionUnits, p.NodeHour)
	return nil
}

// costSentence is the first line: the sum, over what time, and of how many tables.
func costSentence(r *Costs) string {
	t := &r.Total
	if t.Measured == 0 {
		return "Nothing is measured: no replicator answers at admin.listen, or it has carried the tables for seconds only."
	}
	text := fmt.Sprintf("About %s dollars a month, as measured for %s", preflight.DollarsText(t.Dollars.Total),
		measuredText(t.Seconds))
	if t.Measured < t.Tables {
		text += fmt.Sprintf(", for %d of %d tables", t.Measured, t.Tables)
	}
	if t.Passing {
		text += "; that includes a copy or a resync, which ends"
	}
	return text + "."
}

// costRemarks are what the numbers leave open.
func costRemarks(r *Costs) (lines []string) {
	var without, passing []string
	for i := range r.Tables {
		switch c := r.Tables[i].Cost; {
		case c == nil:
			without = append(without, r.Tables[i].Source)
		case c.Passing:
			passing = append(passing, r.Tables[i].Source)
		}
	}
	if r.Total.Measured > 0 && len(without) > 0 {
		lines = append(lines, "Not measured here: "+someNames(without)+"; the replicator that carries a table measures it.")
	}
	if len(passing) > 0 {
		lines = append(lines, "With a copy or a resync in the last hour: "+someNames(passing)+".")
	}
	lines = append(lines, fmt.Sprintf("An account has %s stream reads a month free (%s dollars); they are not taken off. "+
		"Of a provisioned table read units cost nothing more.", humanize.Comma(int64(r.Prices.FreeStreamReads)),
		preflight.DollarsText(price.StreamReadDollars(r.Prices.FreeStreamReads))))
	if i := r.Instance; i != nil {
		var clusters []string
		for _, c := range i.Clusters {
			clusters = append(clusters, fmt.Sprintf("%s of %s in %s", Count(c.Nodes, "node"), c.Storage, c.Name))
		}
		lines = append(lines, fmt.Sprintf("Instance %s (%s): %s, %s dollars a month, whatever is used of them.", i.Name,
			strings.ReplaceAll(cmp.Or(i.Edition, "edition not known"), "_", " "), strings.Join(clusters, ", "),
			preflight.DollarsText(i.Dollars)))
		if i.Edition == "enterprise_plus" {
			lines = append(lines, "A node of Enterprise Plus costs more than the price that is built in.")
		}
	} else {
		lines = append(lines, fmt.Sprintf(
			"Nodes are counted by their share, for rows of 1 KB; a whole node is %s dollars a month.",
			preflight.DollarsText(price.NodeDollars(1))))
	}
	return lines
}

// smallTables is up to how many bytes the kinds of storage differ in no way that matters: one node
// stores them, and reads them in an hour.
const smallTables = 100 << 30

// Storages writes what tables take with each kind of storage; nothing without a size.
func Storages(out io.Writer, bytes int64, all []price.Choice) error {
	switch {
	case bytes == 0 || len(all) == 0:
		return nil
	case bytes < smallTables && all[0].Nodes == 1:
		fmt.Fprintf(out, "Bigtable for %s, as DynamoDB counts them: one node of %s, %s dollars a month, and %s for storage\n",
			humanize.IBytes(uint64(bytes)), all[0].Storage, preflight.DollarsText(all[0].NodeDollars), storageText(&all[0]))
		return nil
	}
	fmt.Fprintf(out, "Bigtable for %s, as DynamoDB counts them, by kind of storage:\n", humanize.IBytes(uint64(bytes)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "    STORAGE\tNODES\t$ NODES\t$ STORAGE\tREADING ALL ROWS ONCE")
	for i := range all {
		c := &all[i]
		fmt.Fprintf(w, "    %s\t%d\t%s\t%s\t%s\n", c.Storage, c.Nodes, preflight.DollarsText(c.NodeDollars), storageText(c),
			verifyCost(c))
	}
	return w.Flush()
}

// storageText returns the dollars of the bytes, where their price is built in.
func storageText(c *price.Choice) string {
	if c.Dollars == nil {
		return "not built in"
	}
	return preflight.DollarsText(*c.Dollars)
}

// verifyCost returns what reading all rows once takes, as a full verify does.
func verifyCost(c *price.Choice) string {
	return fmt.Sprintf("%s hours of all nodes, %s dollars", hoursText(c.VerifyHours),
		preflight.DollarsText(c.VerifyDollars))
}

// hoursText returns hours, to a tenth below ten.
func hoursText(h float64) string { return (&preflight.WayEstimate{Hours: h}).HoursText() }

// ratesText returns the columns from the rates to the dollars.
func ratesText(r price.Rates, nodes float64, m price.Month) string {
	return strings.Join([]string{
		number(r.StreamReads), number(r.ReadUnits), number(r.Writes), number(r.RowsRead), number(nodes),
		preflight.DollarsText(m.StreamReads), preflight.DollarsText(m.ReadUnits), preflight.DollarsText(m.Nodes),
		preflight.DollarsText(m.Total), "",
	}, "\t")
}

// number returns a rate with at most two digits behind the point.
func number(x float64) string {
	if x > 0 && x < 0.005 {
		return "<0.01"
	}
	return humanize.CommafWithDigits(math.Round(x*100)/100, 2)
}

// idleText returns what a table costs while nothing changes, and why.
func idleText(i *price.Idle) string {
	return fmt.Sprintf("%s, read every %gs: %s", Count(i.Shards, "shard"), i.Poll, preflight.DollarsText(i.Dollars))
}

// measuredText returns over what time was measured.
func measuredText(seconds float64) string {
	if seconds < 90 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}

// someNames lists the first of many tables.
func someNames(names []string) string {
	if n := len(names) - tablesInLine; n > 0 {
		return strings.Join(names[:tablesInLine], ", ") + fmt.Sprintf(" and %d others", n)
	}
	return strings.Join(names, ", ")
}
