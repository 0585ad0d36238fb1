package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/preflight"
)

// Capacity writes how much a deployment carries: a line for each table, what each part of the way
// carries, and what to change or buy.
func Capacity(out io.Writer, r *preflight.Report) error {
	k := r.Capacity
	if k == nil || len(k.Tables) == 0 {
		return nil
	}
	fmt.Fprintf(out, "on a machine with %s, as this one; each table while no other one is busy:\n\n",
		processors(k.Processors))
	for i := range k.Tables {
		writeCeiling(out, &k.Tables[i])
	}
	fmt.Fprintf(out, "memory: about %d MiB, up to %d MiB with items of hundreds of KB in every table, "+
		"and up to %d MiB more during copies\n", k.Memory.Usual, k.Memory.Most, k.Memory.Copy)
	fmt.Fprintf(out, "log: at most %s a second, by the fastest table\n", humanize.Bytes(uint64(k.LogBytes)))
	fmt.Fprintf(out, "Bigtable: %s for the fastest table at its ceiling, about %s dollars a month\n",
		Count(k.Cost.Nodes, "node"), humanize.Commaf(k.Cost.NodeDollars))
	if k.Cost.CopyDollars > 0 || k.Cost.CopyTransfer > 0 {
		fmt.Fprintf(out, "copies: about %s dollars, and %s for the way out of AWS\n",
			preflight.DollarsText(k.Cost.CopyDollars), preflight.DollarsText(k.Cost.CopyTransfer))
	}
	fmt.Fprintln(out, "dollars: assumed list prices, see docs/dry-run.md and docs/backfill.md")
	return nil
}

func writeCeiling(out io.Writer, c *preflight.Ceiling) {
	fmt.Fprintf(out, "%s → %s: %s changes a second, limited by %s\n", c.Source, c.Target, humanize.Comma(c.Changes),
		partWord(c.LimitedBy))
	fmt.Fprintf(out, "  to raise it: %s\n", c.Remedy())
	fmt.Fprintf(out, "  Bigtable answers in %g ms; at most %s in flight; items of %s, rows for each: %g; %s\n",
		c.LatencyMS, Count(c.Calls, "call"), humanize.IBytes(uint64(c.ItemBytes)), c.RowsPerItem,
		Count(c.Shards, "open shard"))
	fmt.Fprintf(out, "  changes a second: %s\n", parts(c.Ceilings))
	if c.CopyLimitedBy != "" {
		fmt.Fprintf(out, "  copy of %s: %.2f hours, limited by %s\n", Count(int(c.Items), "item"), c.CopyHours,
			partWord(c.CopyLimitedBy))
		fmt.Fprintf(out, "  items a second: %s\n", parts(c.CopyCeilings))
	}
	fmt.Fprintln(out)
}

// processors returns the number of processors: a control group may have a part of one.
func processors(n float64) string {
	if n == 1 {
		return "1 processor"
	}
	return fmt.Sprintf("%.3g processors", n)
}

// partWord returns what limits, for people. A key of the configuration is its own word.
func partWord(by limit.By) string { return cmp.Or(by.Word(), string(by)) }

// parts lists what each part carries, the least first.
func parts(all map[limit.By]int64) (text string) {
	order := slices.SortedFunc(maps.Keys(all), func(a, b limit.By) int {
		return cmp.Or(cmp.Compare(all[a], all[b]), cmp.Compare(a, b))
	})
	for i, by := range order {
		if i > 0 {
			text += ", "
		}
		text += partWord(by) + " " + humanize.Comma(all[by])
	}
	return text
}
