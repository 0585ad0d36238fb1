package preflight

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
)

// WriteTables writes each server with its address and the principal of the calls, and for each table its rules with
// their class, what becomes of its attributes, and what a copy of it takes; then the permissions that all of it needs.
func (r *Report) WriteTables(out io.Writer) error {
	for _, server := range slices.Sorted(maps.Keys(r.Principals)) {
		fmt.Fprintf(out, "%s: %s, as %s\n", server, r.Endpoints[server], r.Principals[server])
	}
	for i := range r.Selections {
		r.Selections[i].write(out)
	}
	copies := false
	for like := range alike(r.Tables) {
		for _, t := range like {
			fmt.Fprintln(out, t.heading())
		}
		fmt.Fprint(out, like[0].rules())
		for _, t := range like {
			if t.Copy == nil {
				continue
			}
			copies = true
			if len(like) > 1 {
				fmt.Fprintf(out, "  %s:\n", t.Source)
			}
			if err := t.Copy.Write(out); err != nil {
				return fmt.Errorf("write estimate: %w", err)
			}
		}
	}
	if copies {
		fmt.Fprintln(out, PriceNote())
	}
	if r.Policies != nil {
		r.Policies.Write(out)
	}
	if usual, known := r.Cost[CostMemory]; known {
		fmt.Fprintf(out, "memory: run takes about %d MiB, up to %d MiB with items of hundreds of KB in every table\n",
			usual>>20, r.Cost[CostMemoryLarge]>>20)
	}
	if len(r.Tables) > 0 {
		fmt.Fprintln(out)
	}
	return nil
}

// alike yields the tables in their order, and together those that one selection has chosen and of which there is the
// same to say.
func alike(tables []*TableReport) iter.Seq[[]*TableReport] {
	return func(yield func([]*TableReport) bool) {
		for i := 0; i < len(tables); {
			n := i + 1
			for ; n < len(tables) && tables[n].table.Path == tables[i].table.Path &&
				tables[n].rules() == tables[i].rules(); n++ {
			}
			if !yield(tables[i:n]) {
				return
			}
			i = n
		}
	}
}

// heading says where the changes of the table go.
func (t *TableReport) heading() string {
	if t.table.ArchivedOnly() {
		return t.Source + " → the archive, and nothing else"
	}
	return t.Source + " → " + t.Target
}

// rules returns the rules of a table, and what becomes of its attributes; nothing for a table that is only archived.
func (t *TableReport) rules() string {
	if t.table.ArchivedOnly() {
		return ""
	}
	out := &strings.Builder{}
	for i := range t.Rules {
		rule := &t.Rules[i]
		if rule.Row == "" {
			fmt.Fprintf(out, "  %s: %s\n", rule.Name, rule.Why)
			continue
		}
		fmt.Fprintf(out, "  %s: row %s, class %s: %s\n", rule.Name, rule.Row, render.Class(rule.Class), rule.Why)
		if back := render.WayBack(rule); back != "" {
			fmt.Fprintf(out, "    %s\n", back)
		}
	}
	if t.Sampled > 0 {
		fmt.Fprintf(out, "  %s sampled: %s\n", render.Count(t.Sampled, "item"), render.AttributeUses(t.Uses))
	}
	return out.String()
}
