package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/shadow"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// Patterns writes the access patterns of a report: reads with their grades, writes, and what had no
// pattern.
func Patterns(w io.Writer, r *shadow.Report) error {
	fmt.Fprintln(w, r.Sentence())
	if r.Passed.Unsampled+r.Passed.Dropped > 0 {
		fmt.Fprintf(w, "%s outside of the share, %s dropped because the engine was busy, away or killed.\n",
			humanize.Comma(r.Passed.Unsampled), humanize.Comma(r.Passed.Dropped))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	replayed := "" // columns that a run without replays does not have
	_, compared := r.Totals()
	if compared {
		replayed = "replayed\twrong\tBigtable p99\t"
	}
	head := "\nrequests\tshare\tp50\tp99\tbytes p99\t" + replayed + "grade\tpattern\n"
	for i := range r.Patterns {
		l := &r.Patterns[i]
		grade := "-"
		if l.Verdict != nil {
			grade = string(l.Verdict.Grade)
		}
		if l.Pattern.Kind == pattern.Write {
			grade = "write"
		}
		if compared {
			replayed = replayedColumns(l.Replay)
		}
		fmt.Fprintf(t, "%s%s\t%.1f %%\t%.1f ms\t%.1f ms\t%s\t%s%s\t%s\n", head, humanize.Comma(l.Requests), 100*l.Share,
			float64(l.Micros.P50)/1000, float64(l.Micros.P99)/1000, humanize.Comma(l.Bytes.P99), replayed, grade, l.Text)
		head = ""
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range r.Patterns {
		writeVerdict(w, &r.Patterns[i])
		writeReplayed(w, &r.Patterns[i])
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(w, "%s without a pattern: %s.\n", humanize.Comma(r.Skipped[reason]), skippedWord(pattern.Reason(reason)))
	}
	return nil
}

// replayedColumns returns how often a read was replayed, with how many mismatches, and its time.
func replayedColumns(r *shadow.Replayed) string {
	if r == nil {
		return "-\t-\t-\t"
	}
	return fmt.Sprintf("%s\t%s\t%.1f ms\t", humanize.Comma(r.Reads), humanize.Comma(r.Wrong()), float64(r.Micros.P99)/1000)
}

// writeReplayed writes why reads were not replayed, and what the mismatches are.
func writeReplayed(w io.Writer, l *shadow.Line) {
	r := l.Replay
	if r == nil {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Mismatches)) {
		fmt.Fprintf(w, "  %s: %s\n", kind, humanize.Comma(r.Mismatches[kind]))
	}
	for _, why := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(w, "  %s not replayed: %s\n", humanize.Comma(r.Skipped[why]), notReplayed(pattern.Reason(why)))
	}
}

// notReplayed returns why reads were not replayed.
func notReplayed(why pattern.Reason) string {
	words := map[pattern.Reason]string{
		replay.Failed:     "DynamoDB refused them, or the connection was cut",
		replay.Large:      "they return more than 1 MiB or 10,000 rows",
		replay.Busy:       "too many others wait",
		replay.NoMapping:  "the table is not replicated",
		replay.NoRead:     "no rows serve them",
		replay.Declared:   "only the author of `reads` can make their key",
		replay.NoKey:      "the mapping makes no row key of their values",
		replay.Projection: "they return a part of the attributes",
		replay.Unreadable: "the answer cannot be read",
		replay.Ended:      "the run ended first",
		replay.Bigtable:   "Bigtable could not be read",
	}
	if text, ok := words[why]; ok {
		return text
	}
	return string(why)
}

// writeVerdict writes why a read is not served, and what would serve it.
func writeVerdict(w io.Writer, l *shadow.Line) {
	v := l.Verdict
	if v == nil {
		return
	}
	fmt.Fprintf(w, "\n%s\n", l.Text)
	if v.Read != nil {
		fmt.Fprintf(w, "  %s: %s %s\n", v.Grade, v.Read.How, v.Read.Key)
	} else {
		fmt.Fprintf(w, "  %s\n", v.Grade)
	}
	if v.Why != "" {
		fmt.Fprintf(w, "  why: %s\n", v.Why)
	}
	if v.Grade != access.NoRead {
		return
	}
	for _, x := range v.Index {
		fmt.Fprintf(w, "  rule %s would serve it with this entry of `index`:\n    %s\n", x.Rule,
			strings.ReplaceAll(strings.TrimRight(x.Entry, "\n"), "\n", "\n    "))
		if x.Family != "" {
			fmt.Fprintf(w, "  and this one of `families`:\n    %s\n", x.Family)
		}
	}
}

// skippedWord returns why a request has no pattern.
func skippedWord(reason pattern.Reason) string {
	switch reason {
	case pattern.NotItems:
		return "their operation reads and writes no items"
	case pattern.BadJSON:
		return "their body is no JSON object"
	case pattern.BadTable:
		return "they name no table"
	case pattern.BadKey:
		return "their key is not the table's"
	case pattern.BadExpression:
		return "their expression cannot be read"
	case shadow.TooLarge:
		return "their body is longer than 1 MiB, or cannot be unpacked"
	}
	return string(reason)
}
