// Package describe writes down what a program puts into Bigtable: a data dictionary for people, and
// the definitions of materialized views.
package describe

import (
	"fmt"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// Dictionary returns a data dictionary of one table in markdown: entities, keys, columns,
// encodings, access patterns, and the rows of sample items.
func Dictionary(p *transform.Program, samples []change.Image) string {
	var sb strings.Builder
	t := p.Table()
	fmt.Fprintf(&sb, "## %s → %s\n\nPrimary key: `%s` (%c)", t.Source, t.Target, t.Schema.Partition.Name,
		t.Schema.Partition.Type)
	if s := t.Schema.Sort; s != nil {
		fmt.Fprintf(&sb, ", `%s` (%c)", s.Name, s.Type)
	}
	sb.WriteString(".\n\n| entity | items | row key | class | columns |\n|---|---|---|---|---|\n")
	for _, r := range p.Report() {
		if r.Row == "" {
			fmt.Fprintf(&sb, "| %s | %s | – | – | %s |\n", r.Name, cellText(r.Match), r.Why)
			continue
		}
		fmt.Fprintf(&sb, "| %s | %s | `%s` | %s: %s | %s |\n", r.Name, cellText(r.Match), cellText(r.Row),
			transform.Class(r.Class[0]).Named(), r.Why,
			cellText(strings.Join(r.Columns, "; ")))
	}
	sb.WriteString("\n| family | keeps |\n|---|---|\n")
	for _, f := range p.Families() {
		fmt.Fprintf(&sb, "| `%s` | %s |\n", f.Name, retention(f))
	}
	reads(&sb, p)
	views(&sb, p)
	rows(&sb, p, samples)
	return sb.String()
}

// retention describes what garbage collection leaves in a family.
func retention(f transform.Family) string {
	var limits []string
	switch {
	case f.Aggregate != "":
		limits = append(limits, "one aggregate per column ("+f.Aggregate+")")
	case f.MaxVersions == 1:
		limits = append(limits, "the newest version")
	case f.MaxVersions > 1:
		limits = append(limits, fmt.Sprintf("the newest %d versions", f.MaxVersions))
	}
	if f.MaxAge > 0 {
		limits = append(limits, "what is younger than "+age(f.MaxAge))
	}
	switch {
	case len(limits) == 0:
		return "all versions"
	case f.Intersection: // collected when both limits are passed
		return strings.Join(limits, ", or ")
	}
	return strings.Join(limits, ", and only ")
}

// age writes a duration in the largest unit without a remainder.
func age(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d%u.of == 0 {
			return fmt.Sprintf("%d%s", d/u.of, u.name)
		}
	}
	return d.String()
}

// views writes the materialized views with their queries.
func views(sb *strings.Builder, p *transform.Program) {
	list := p.Views()
	if len(list) == 0 {
		return
	}
	sb.WriteString("\n| materialized view | query |\n|---|---|\n")
	for _, v := range list {
		fmt.Fprintf(sb, "| %s | %s |\n", v.Name, cellText(Query(p.Table().Target, v)))
	}
}

// cellText escapes text for a cell of a markdown table.
func cellText(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// reads writes the access patterns.
func reads(sb *strings.Builder, p *transform.Program) {
	list := p.Reads()
	if len(list) == 0 {
		return
	}
	sb.WriteString("\n| access pattern | how | where | fold |\n|---|---|---|---|\n")
	for _, r := range list {
		cells := r.Family
		if len(r.Except) > 0 {
			cells += " without " + cellText(strings.Join(r.Except, ", "))
		}
		fmt.Fprintf(sb, "| %s | %s `%s` | %s | %s |\n", r.Name, r.How, cellText(r.Key), cells, r.Fold)
	}
}

// rows writes the cells of sample items; items that the mapping refuses are left out.
func rows(sb *strings.Builder, p *transform.Program, samples []change.Image) {
	if len(samples) == 0 {
		return
	}
	sb.WriteString("\n| sample row | column | value |\n|---|---|---|\n")
	for _, img := range samples {
		projected, err := p.Project(img)
		if err != nil {
			continue
		}
		for _, r := range projected {
			for _, c := range r.Cells {
				fmt.Fprintf(sb, "| `%s` | `%s:%s` | %s |\n", cellText(transform.Readable(r.Key)), c.Family,
					cellText(transform.Readable(c.Qualifier)), cellText(short(transform.Readable(c.Value))))
			}
		}
	}
}

func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
