package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/pipeline/dryrun"
)

// drySteps returns a bar for each table: how much of the duration is over, and the rates so far.
func drySteps(r *dryrun.Report, elapsed, duration time.Duration) (all []render.Step) {
	percent := 100.0
	if duration > 0 {
		percent = min(100, 100*elapsed.Seconds()/duration.Seconds())
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		all = append(all, render.Step{Name: t.Source, Percent: percent, Text: fmt.Sprintf(
			"%s records, %s/s, %s rows/s, %s refused", humanize.Comma(t.Records), rate(t.RecordsRate), rate(t.RowsRate),
			humanize.Comma(t.Refused))})
	}
	return all
}

// writeDry writes the report for people: the sentence, a line per table, what would be refused,
// what is hot, the costs, and what to do next.
func writeDry(out io.Writer, r *dryrun.Report) error {
	var records, refused int64
	for i := range r.Tables {
		records, refused = records+r.Tables[i].Records, refused+r.Tables[i].Refused
	}
	e := &r.Estimate
	fmt.Fprintf(out, "%s %s read in %s: %s rows/s for Bigtable, %s refused; about %s and %s dollars a month. "+
		"Nothing was written.\n\n", humanize.Comma(records), english.PluralWord(int(records), "record", ""),
		seconds(r.Seconds), rate(e.RowsRate), humanize.Comma(refused), render.Count(e.Nodes, "node"),
		dollars(e.Dollars.Total))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join([]string{"TABLE", "RECORDS", "RECORDS/S", "ROWS/S", "CELLS/S", "BYTES/S", "TTL/S",
		"REFUSED", "ITEM P50/P99/MAX", "ROW P50/P99/MAX"}, "\t"))
	for i := range r.Tables {
		t := &r.Tables[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Source, humanize.Comma(t.Records), rate(t.RecordsRate),
			rate(t.RowsRate), rate(t.CellsRate), humanize.IBytes(uint64(t.BytesRate)), rate(t.TTLRate),
			humanize.Comma(t.Refused), sizes(t.ItemSizes), sizes(t.RowSizes))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	for i := range r.Tables {
		writeDryTable(out, &r.Tables[i])
	}
	writeEstimate(out, e)
	for _, text := range r.Warnings {
		fmt.Fprintf(out, "\nwarning: %s\n", text)
	}
	if refused > 0 {
		fmt.Fprintln(out, "next: correct the mapping (`replicator explain --item` shows its steps), then run this again")
	} else {
		fmt.Fprintln(out, "next: `replicator check`, then `replicator run`")
	}
	return nil
}

// writeDryTable writes what stands out in one table.
func writeDryTable(out io.Writer, t *dryrun.TableReport) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if t.Records == 0 {
		add("no change was read: an idle table, or too short a time")
	}
	if t.Shards.Gaps > 0 {
		add("%s: records were lost before they were read", render.Count(t.Shards.Gaps, "shard"))
	}
	if t.Ignored > 0 {
		add("%s make no row: the mapping drops them", render.Count(int(t.Ignored), "record"))
	}
	for _, why := range t.Refusals {
		add("refused %s: %s (%s)", times(why.Count), why.Reason, why.Code)
	}
	for _, h := range t.HotRows {
		add("row %s takes %.0f %% of the writes, %s/s", h.Hash, 100*h.Share, rate(h.Rate))
	}
	for _, h := range t.HotPartitions {
		add("partition key %s takes %.0f %% of the changes, %s/s", h.Hash, 100*h.Share, rate(h.Rate))
	}
	if t.HottestRow > 100 {
		add("one row was written %s times a second for ten seconds: one node serves it, however many there are",
			rate(t.HottestRow))
	}
	if len(lines) > 0 {
		fmt.Fprintf(out, "\n%s:\n  %s\n", t.Source, strings.Join(lines, "\n  "))
	}
}

func writeEstimate(out io.Writer, e *dryrun.Estimate) {
	p, d := &e.Prices, &e.Dollars
	fmt.Fprintf(out, "\nEstimate: %s of SSD at 70 %%; dollars a month: nodes %s, storage %s, reads of the streams %s, "+
		"transfer between the clouds %s.\n", render.Count(e.Nodes, "node"), dollars(d.Nodes), dollars(d.Storage),
		dollars(d.StreamReads), dollars(d.Transfer))
	if other := otherNodes(e); other != "" {
		fmt.Fprintf(out, "Nodes with another storage: %s.\n", other)
	}
	fmt.Fprintf(out, "Assumed list prices of %s, not asked from the clouds and not confirmed: %g a node and hour, "+
		"%g a GB and month, %g for 100,000 reads of a stream, %g a GB transferred; docs/dry-run.md says where to compare.\n",
		p.Region+" and "+p.GoogleRegion, p.NodeHour, p.BigtableGB, p.StreamReads, p.OutgoingGB)
}

// otherNodes returns how many nodes the kinds of storage need that need another number than SSD.
func otherNodes(e *dryrun.Estimate) string {
	var others []string
	for i := range e.Storages {
		if s := &e.Storages[i]; s.Nodes != e.Nodes {
			others = append(others, fmt.Sprintf("%d with %s", s.Nodes, s.Storage))
		}
	}
	return strings.Join(others, "; ")
}

func times(n int64) string { return render.Count(int(n), "time") }

func sizes(s dryrun.Sizes) string {
	return fmt.Sprintf("%s/%s/%s", size(s.P50), size(s.P99), size(s.Max))
}

func size(n int64) string { return strings.ReplaceAll(humanize.IBytes(uint64(n)), " ", "") }

func rate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return humanize.Comma(int64(perSecond + 0.5))
}

func dollars(d float64) string { return humanize.CommafWithDigits(d, 2) }

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}
