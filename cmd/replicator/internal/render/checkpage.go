package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/problem"
)

// CheckPage writes what a check found as a page to share: the verdict, all problems, each table
// with its rules and what a copy of it costs, and the permissions. It holds no items and no
// secrets.
func CheckPage(out io.Writer, r *preflight.Report, configuration string) {
	all := append(slices.Clone(r.Problems), r.Environment...)
	errs := problem.CountErrors(all)
	fmt.Fprintf(out, "# Check of %s\n\n**%s, %s.**\n", cell(configuration), Count(errs, "error"),
		Count(len(all)-errs, "warning"))
	if len(all) > 0 {
		fmt.Fprint(out, "\n## Problems\n\n| | where | what | what to do |\n|---|---|---|---|\n")
	}
	for i := range all {
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", all[i].Severity, cell(place(&all[i])),
			cell(all[i].What), cell(all[i].Hint))
	}
	pageServers(out, r)
	if len(r.Selections) > 0 {
		fmt.Fprint(out, "\n## Found tables\n\n")
	}
	for i := range r.Selections {
		fmt.Fprint(out, "- ")
		writeSelection(out, &r.Selections[i])
	}
	for _, t := range r.Tables {
		pageTable(out, t)
	}
	pageCopies(out, r)
	pageRunning(out, r)
	if r.Policies != nil {
		fmt.Fprintf(out, "\n## Permissions\n\nAWS:\n\n```json\n%s\n```\n", r.Policies.AWS.Text())
		if len(r.Policies.Google) > 0 {
			fmt.Fprint(out, "\nGoogle Cloud:\n\n```sh\n")
			for _, b := range r.Policies.Google {
				fmt.Fprintf(out, "# %s\n%s\n", b.For, b.Command)
			}
			fmt.Fprint(out, "```\n")
		}
	}
}

// pageServers writes each server with the identity used there, and the memory that run takes.
func pageServers(out io.Writer, r *preflight.Report) {
	usual, known := r.Cost[preflight.CostMemory]
	if len(r.Principals) == 0 && !known {
		return
	}
	fmt.Fprint(out, "\n## Servers\n\n")
	for _, server := range slices.Sorted(maps.Keys(r.Principals)) {
		fmt.Fprintf(out, "- %s: %s, as %s\n", server, cell(r.Endpoints[server]), cell(r.Principals[server]))
	}
	if known {
		fmt.Fprintf(out, "- memory of run: about %d MiB, up to %d MiB with items of hundreds of KB in every table, "+
			"and up to %d MiB more while it copies\n",
			usual>>20, r.Cost[preflight.CostMemoryLarge]>>20, r.Cost[preflight.CostMemoryCopy]>>20)
	}
}

// pageTable writes the rules of a table.
func pageTable(out io.Writer, t *preflight.TableReport) {
	if t.Archived {
		fmt.Fprintf(out, "\n## %s → the archive\n", cell(t.Source))
		return
	}
	fmt.Fprintf(out, "\n## %s → %s\n\n| rule | row | class | why |\n|---|---|---|---|\n", cell(t.Source), cell(t.Target))
	for i := range t.Rules {
		rule := &t.Rules[i]
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", cell(rule.Name), code(rule.Row), cell(rule.Class), cell(rule.Why))
	}
	if t.Sampled > 0 {
		fmt.Fprintf(out, "\n%s sampled: %s.\n", Count(t.Sampled, "item"), cell(AttributeUses(t.Uses)))
	}
}

// pageCopies writes what the copies that begin with the first run take.
func pageCopies(out io.Writer, r *preflight.Report) {
	tables := slices.DeleteFunc(slices.Clone(r.Tables), func(t *preflight.TableReport) bool { return t.Copy == nil })
	if len(tables) == 0 {
		return
	}
	fmt.Fprint(out, "\n## Cost of the copies\n\n| table | items | size | by | read units | dollars | "+
		"transfer | hours | |\n|---|---:|---:|---|---:|---:|---:|---:|---|\n")
	for _, t := range tables {
		for _, way := range t.Copy.Ways() {
			name := way.Name
			if name == t.Copy.From {
				name = "**" + name + "**"
			}
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", cell(t.Source), humanize.Comma(t.Copy.Items),
				humanize.IBytes(uint64(t.Copy.Bytes)), name, humanize.Comma(way.ReadUnits), way.DollarsText(),
				way.TransferText(), way.HoursText(), cell(way.Note))
		}
	}
	fmt.Fprintf(out, "\n%s. What the configuration chooses is in bold.\n", preflight.PriceNote())
}

// pageRunning writes what the pipeline costs while nothing changes, and what its tables take in
// Bigtable.
func pageRunning(out io.Writer, r *preflight.Report) {
	if r.Running == nil {
		return
	}
	fmt.Fprint(out, "\n## Cost of a month without changes\n\n| table | open shards | read every | reads | dollars |\n"+
		"|---|---:|---:|---:|---:|\n")
	for _, t := range r.Tables {
		if i := t.Idle; i != nil {
			fmt.Fprintf(out, "| %s | %d | %gs | %s | %s |\n", cell(t.Source), i.Shards, i.Poll, humanize.Comma(int64(i.Reads)),
				preflight.DollarsText(i.Dollars))
		}
	}
	fmt.Fprintf(out, "| together | %d | | %s | %s |\n", r.Running.Idle.Shards, humanize.Comma(int64(r.Running.Idle.Reads)),
		preflight.DollarsText(r.Running.Idle.Dollars))
	if len(r.Running.Storages) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s in Bigtable:\n\n| storage | nodes | dollars for nodes | for storage | "+
		"reading all rows once |\n|---|---:|---:|---:|---|\n", humanize.IBytes(uint64(r.Running.Bytes)))
	for i := range r.Running.Storages {
		c := &r.Running.Storages[i]
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s |\n", c.Storage, c.Nodes, preflight.DollarsText(c.NodeDollars),
			storageText(c), verifyCost(c))
	}
}

// place names where a problem is.
func place(p *problem.Problem) string {
	if p.Line > 0 {
		return fmt.Sprintf("%s (line %d)", p.Path, p.Line)
	}
	return p.Path
}

// cell returns a text as it may stand in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`).Replace(text)
}

// code returns a text in a fixed font, as it may stand in a table.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}
