package shadow

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// WriteText writes the report for people: reads with their grades, writes, the rows that serve
// reads, why others are not served, what would serve them, and what to do next. mismatches is the file
// that names these, if there is one.
func (r *Report) WriteText(w io.Writer, mismatches string) error {
	for _, s := range r.Sentences() {
		fmt.Fprintln(w, s)
	}
	if r.Passed.Unsampled+r.Passed.Dropped > 0 {
		fmt.Fprintf(w, "%s outside of the share, %s dropped because the engine was busy, away or killed.\n",
			humanize.Comma(r.Passed.Unsampled), humanize.Comma(r.Passed.Dropped))
	}
	if err := writePatterns(w, r); err != nil {
		return err
	}
	if err := writeServed(w, r); err != nil {
		return err
	}
	for i := range r.Patterns {
		writeRest(w, &r.Patterns[i])
	}
	writeProposals(w, r)
	for n, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		if n == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s without a pattern: %s.\n", humanize.Comma(r.Skipped[reason]),
			WhyNoPattern(pattern.Reason(reason)))
	}
	writeNext(w, r, mismatches)
	return nil
}

// writePatterns writes a table of all patterns.
func writePatterns(w io.Writer, r *Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	replayed := "" // columns that a run without replays does not have
	_, compared := r.Totals()
	if compared {
		replayed = "replayed\tmismatches\tBigtable p99\t"
	}
	head := "\nrequests\tshare\tp50\tp99\tbytes p99\t" + replayed + "grade\tpattern\n"
	for i := range r.Patterns {
		l := &r.Patterns[i]
		if compared {
			replayed = replayedColumns(l.Replay)
		}
		measured := "-\t-\t-" // where no request was answered with 200
		if l.Requests > l.Failed {
			measured = fmt.Sprintf("%s\t%s\t%s", millis(l.Micros.P50), millis(l.Micros.P99), humanize.Comma(l.Bytes.P99))
		}
		fmt.Fprintf(t, "%s%s\t%.1f %%\t%s\t%s%s\t%s\n", head, humanize.Comma(l.Requests), 100*l.Share, measured, replayed,
			gradeOf(l), l.Text)
		head = ""
	}
	return t.Flush()
}

// gradeOf returns the grade of a pattern in the table.
func gradeOf(l *Line) string {
	switch {
	case l.Pattern.Kind == pattern.Write:
		return "write"
	case l.Verdict != nil:
		return string(l.Verdict.Grade)
	}
	return "-"
}

// replayedColumns returns how often a read was replayed, with how many mismatches, and its time.
func replayedColumns(r *Replayed) string {
	if r == nil || r.Reads == 0 {
		return "-\t-\t-\t"
	}
	return fmt.Sprintf("%s\t%s\t%s\t", humanize.Comma(r.Reads), humanize.Comma(r.Wrong()), millis(r.Micros.P99))
}

// writeServed writes the rows that serve reads.
func writeServed(w io.Writer, r *Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "\nThe rows of the reads that are served:\n"
	for i := range r.Patterns {
		l := &r.Patterns[i]
		if v := l.Verdict; v != nil && v.Grade == access.Served && v.Read != nil {
			fmt.Fprintf(t, "%s  %s\t%s\t%s\n", head, v.Read.How, v.Read.Key, l.Text)
			head = ""
		}
	}
	return t.Flush()
}

// writeRest writes what the table and the rows that serve reads do not show of a pattern.
func writeRest(w io.Writer, l *Line) {
	var lines []string
	if v := l.Verdict; v != nil && v.Grade != access.Served {
		if v.Read != nil {
			lines = append(lines, fmt.Sprintf("%s: %s %s", v.Grade, v.Read.How, v.Read.Key))
		} else {
			lines = append(lines, string(v.Grade))
		}
	}
	if v := l.Verdict; v != nil && v.Why != "" {
		lines = append(lines, strings.ReplaceAll(v.Why, "; ", "\n  "))
	}
	if r := l.Replay; r != nil {
		for _, kind := range slices.Sorted(maps.Keys(r.Mismatches)) {
			lines = append(lines, MismatchName(kind)+": "+humanize.Comma(r.Mismatches[kind]))
		}
		for _, why := range slices.Sorted(maps.Keys(r.Skipped)) {
			if pattern.Reason(why) == replay.NoRead {
				continue // the grade shows it
			}
			lines = append(lines, fmt.Sprintf("%s not replayed: %s", humanize.Comma(r.Skipped[why]),
				WhyNotReplayed(pattern.Reason(why))))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(w, "\n%s\n  %s\n", l.Text, strings.Join(lines, "\n  "))
	}
}

// writeProposals writes the index rows that would serve reads, each once, by table and rule.
func writeProposals(w io.Writer, r *Report) {
	type place struct{ table, list string } // list: `families`, or `index` of a rule
	entries := map[place][]string{}
	add := func(table, list, entry string) {
		at := place{table, list}
		if entry = strings.TrimRight(entry, "\n"); entry != "" && !slices.Contains(entries[at], entry) {
			entries[at] = append(entries[at], entry)
		}
	}
	for i := range r.Patterns {
		l := &r.Patterns[i]
		if l.Verdict == nil || l.Verdict.Grade != access.NoRead {
			continue
		}
		for _, x := range l.Verdict.Index {
			add(l.Pattern.Table, "`index` of rule "+x.Rule, "- "+x.Entry)
			add(l.Pattern.Table, "`families`", x.Family)
		}
	}
	head := "\nThese entries of the mapping would serve reads that have no rows:\n"
	for _, at := range slices.SortedFunc(maps.Keys(entries), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.list, b.list))
	}) {
		fmt.Fprintf(w, "%s  table %s, %s:\n", head, at.table, at.list)
		for _, entry := range entries[at] {
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(entry, "\n", "\n    "))
		}
		head = ""
	}
}

// writeNext writes what to do next.
func writeNext(w io.Writer, r *Report, mismatches string) {
	proposed := slices.ContainsFunc(r.Patterns, func(l Line) bool {
		return l.Verdict != nil && len(l.Verdict.Index) > 0
	})
	totals, _ := r.Totals()
	switch {
	case totals.Mismatches > 0 && mismatches != "":
		fmt.Fprintf(w, "\nNext: `replicator explain --table TABLE --key KEY` for an item of %s, "+
			"then `replicator repair --from %[1]s`.\n", mismatches)
	case totals.Mismatches > 0:
		fmt.Fprintln(w, "\nNext: `replicator shadow --mismatches FILE` names the items of mismatches.")
	case proposed:
		fmt.Fprintln(w, "\nNext: put these entries into the mapping, then `replicator check`, and run shadow again.")
	}
}
