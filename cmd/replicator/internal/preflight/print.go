package preflight

import (
	"fmt"
	"io"
	"maps"
	"slices"

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
	for _, t := range r.Tables {
		t.write(out)
		if t.Copy == nil {
			continue
		}
		copies = true
		if err := t.Copy.Write(out); err != nil {
			return fmt.Errorf("write estimate: %w", err)
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

// write writes the rules of a table, and what becomes of its attributes.
func (t *TableReport) write(out io.Writer) {
	if t.table.ArchivedOnly() {
		fmt.Fprintf(out, "%s → the archive, and nothing else\n", t.Source)
		return
	}
	fmt.Fprintf(out, "%s → %s\n", t.Source, t.Target)
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
}
