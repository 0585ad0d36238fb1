package shadow

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/transform/access"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Parse(pageSource))

// WritePage writes the report as a page without scripts. Like the report it has no key and no value.
func (r *Report) WritePage(w io.Writer, version string) error {
	totals, replayed := r.Totals()
	sentences := r.Sentences()
	last := len(sentences) - 1 // the one that matters most
	p := pageOf{Title: sentences[last], Sentences: sentences[:last], Version: version, Began: at(r.Began),
		Ended: at(r.Ended)}
	p.Verdict = "counted"
	switch {
	case totals.Mismatches > 0:
		p.Verdict = "different"
	case totals.Undecided > 0:
		p.Verdict = "undecided"
	case totals.Replayed > 0:
		p.Verdict = "equal"
	}
	count := func(name string, n int64) { p.Counts = append(p.Counts, pageCount{name, humanize.Comma(n)}) }
	count("requests", r.Passed.Total)
	count("counted", r.Counted)
	count("dropped", r.Passed.Dropped)
	if replayed {
		count("reads replayed", totals.Replayed)
		count("mismatches", totals.Mismatches)
		count("settled", totals.Settled)
		count("undecided", totals.Undecided)
	}
	for i := range r.Patterns {
		p.Patterns = append(p.Patterns, r.line(i))
	}
	if err := page.Execute(w, &p); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

// pageOf is what the template shows.
type pageOf struct {
	Verdict, Title, Version, Began, Ended string
	Sentences                             []string
	Counts                                []pageCount
	Patterns                              []pageLine
}

// pageCount is a number with its name.
type pageCount struct{ Name, N string }

// pageLine is one pattern.
type pageLine struct {
	*Line
	Grade, Class   string
	Requests       string
	Share          string
	Source, Target string // the two p99, in milliseconds; empty where nothing was measured
	Bars           []pageBars
	Wrong, Skipped []pageCount
}

// pageBars are how many answers of each side took so long.
type pageBars struct {
	Name           string
	Source, Target float64 // percent of the longest bar
}

// line returns one pattern as the page shows it.
func (r *Report) line(i int) pageLine {
	l := &r.Patterns[i]
	out := pageLine{Line: l, Grade: "not graded", Requests: english.Plural(int(l.Requests), "request", ""),
		Share: fmt.Sprintf("%.1f %%", 100*l.Share)}
	if l.Requests > l.Failed {
		out.Source = millis(l.Micros.P99)
	}
	switch {
	case l.Pattern.Kind == pattern.Write:
		out.Grade = "write"
	case l.Verdict != nil:
		out.Grade = string(l.Verdict.Grade)
		out.Class = map[access.Grade]string{access.Served: "equal", access.NoRead: "different"}[l.Verdict.Grade]
	}
	at := slices.IndexFunc(r.Counts.Patterns, func(c pattern.Count) bool { return c.Pattern.ID() == l.Pattern.ID() })
	if l.Replay == nil || at < 0 {
		return out
	}
	for _, kind := range slices.Sorted(maps.Keys(l.Replay.Mismatches)) {
		out.Wrong = append(out.Wrong, pageCount{MismatchName(kind), humanize.Comma(l.Replay.Mismatches[kind])})
		out.Class = "different"
	}
	for _, why := range slices.Sorted(maps.Keys(l.Replay.Skipped)) {
		n := humanize.Comma(l.Replay.Skipped[why])
		out.Skipped = append(out.Skipped, pageCount{WhyNotReplayed(pattern.Reason(why)), n})
	}
	if l.Replay.Reads > 0 {
		out.Target = millis(l.Replay.Micros.P99)
		out.Bars = barsOf(&r.Counts.Patterns[at].Micros, &r.Counts.Patterns[at].Replay.Micros)
	}
	return out
}

func millis(micros int64) string { return fmt.Sprintf("%.1f ms", float64(micros)/1000) }

// longest are the longest times of the bars of a page, in microseconds.
var longest = []int64{250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000}

// barsOf returns the times of both sides, from the first bar that one of them has to the last.
func barsOf(source, target *pattern.Histogram) (bars []pageBars) {
	a, b := source.Within(longest), target.Within(longest)
	part := func(n, of int64) float64 { return 100 * float64(n) / float64(max(of, 1)) }
	first, last, most := -1, 0, 0.0
	for i := range a {
		x := pageBars{Source: part(a[i], source.N), Target: part(b[i], target.N)}
		x.Name = "more"
		if i < len(longest) {
			x.Name = "≤ " + fmt.Sprint(float64(longest[i])/1000) + " ms"
		}
		bars = append(bars, x)
		if a[i]+b[i] > 0 {
			if last = i; first < 0 {
				first = i
			}
		}
		most = max(most, x.Source, x.Target)
	}
	if first < 0 {
		return nil
	}
	bars = bars[first : last+1]
	for i := range bars {
		bars[i].Source, bars[i].Target = 100*bars[i].Source/most, 100*bars[i].Target/most
	}
	return bars
}
