package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/verify/report"
)

// printGroups prints what is not equal as a table, with a column for each kind that there is.
func printGroups(w io.Writer, list []report.Group, names ...string) {
	if len(list) == 0 {
		return
	}
	kinds := report.KindsIn(list)
	head := append(names, "items")
	for _, k := range kinds {
		head = append(head, report.KindName(k))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  %s\n", strings.Join(head, "\t"))
	for i := range list {
		g := &list[i]
		line := []string{cmp.Or(g.Prefix, g.Rule, "(no rule)")}
		if len(names) > 1 {
			line = append(line, cmp.Or(g.Rows, "-"))
		}
		line = append(line, humanize.Comma(g.Items))
		for _, k := range kinds {
			line = append(line, humanize.Comma(g.Kinds[k]))
		}
		fmt.Fprintf(t, "  %s\n", strings.Join(line, "\t"))
	}
	_ = t.Flush() // as every line that is printed
}
