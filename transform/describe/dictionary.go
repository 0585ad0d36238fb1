package describe

import (
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// Dictionary is a data dictionary of one table in markdown: entities, keys, columns, encodings, access
// patterns, and rows of sample items.
func Dictionary(p *transform.Program, samples []change.Image) string {
	var sb strings.Builder
	t := p.Table()
	fmt.Fprintf(&sb, "## %s → %s\n\nPrimary key: `%s` (%c)", t.Source, t.Target, t.Schema.Partition.Name, t.Schema.Partition.Type)
	if s := t.Schema.Sort; s != nil {
		fmt.Fprintf(&sb, ", `%s` (%c)", s.Name, s.Type)
	}
	sb.WriteString(".\n\n| entity | items | row key | class | columns |\n|---|---|---|---|---|\n")
	for _, r := range p.Report() {
		if r.Row == "" {
			fmt.Fprintf(&sb, "| %s | %s | – | – | %s |\n", r.Name, cellText(r.Match), r.Why)
			continue
		}
		fmt.Fprintf(&sb, "| %s | %s | `%s` | %s: %s | %s |\n", r.Name, cellText(r.Match), cellText(r.Row), r.Class, r.Why, cellText(strings.Join(r.Columns, "; ")))
	}
	sb.WriteString("\n| family | garbage collection |\n|---|---|\n")
	for _, f := range p.Families() {
		fmt.Fprintf(&sb, "| `%s` | %s |\n", f.Name, strings.TrimSpace(gc(f)+" "+f.Aggregate))
	}
	reads(&sb, p)
	rows(&sb, p, samples)
	return sb.String()
}

// cellText keeps text inside of a markdown table's cell.
func cellText(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func reads(sb *strings.Builder, p *transform.Program) {
	list := p.Reads()
	if len(list) == 0 {
		return
	}
	sb.WriteString("\n| access pattern | how | where | fold |\n|---|---|---|---|\n")
	for _, r := range list {
		fmt.Fprintf(sb, "| %s | %s `%s` | %s | %s |\n", r.Name, r.How, cellText(r.Key), r.Family, r.Fold)
	}
}

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
				fmt.Fprintf(sb, "| `%s` | `%s:%s` | %s |\n", cellText(transform.Readable(r.Key)), c.Family, cellText(transform.Readable(c.Qualifier)), cellText(short(transform.Readable(c.Value))))
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
