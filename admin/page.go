package admin

import (
	"cmp"
	"embed"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

//go:embed page.html style.css page.js icon.svg
var files embed.FS

var templates = template.Must(template.ParseFS(files, "page.html"))

// pagePolicy lets a page load its own style sheet, script and icon, and nothing else.
const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pageAssets serves style sheet, script and icon below /page/.
func pageAssets() http.Handler {
	serve := http.StripPrefix("/page/", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page/style.css", "/page/page.js", "/page/icon.svg":
			w.Header().Set("Cache-Control", "no-cache")
			serve.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// pageHead is what both pages begin and end with.
type pageHead struct {
	Line, State, Since string
	Cause, Next        []textPart
	Tone               string // good, busy, warn or bad
	Verdict            status.Verdict
	Reasons            []reason
	Version, Pipeline  string
	Now                string
	Owners, Runbook    string
}

// docs is where the documentation is read.
const docs = "https://github.com/tailrace-cdc/replicator/blob/main/docs/"

// ownersText returns how many replicas carry the tables.
func ownersText(s *pipeline.Status) string {
	owners := map[string]bool{}
	for i := range s.Tables {
		if o := s.Tables[i].Owner; o != "" {
			owners[o] = true
		}
	}
	return countText(len(s.Tables), "table") + " on " + countText(len(owners), "replica")
}

func newHead(s *pipeline.Status, version string, now time.Time) pageHead {
	v := s.Verdict
	cause := v.Cause
	if v.Others > 0 {
		cause += "; and " + countText(v.Others, "further reason")
	}
	h := pageHead{
		Line: v.Line(now), State: strings.ToUpper(v.State[:1]) + v.State[1:],
		Cause: textParts(strings.TrimSuffix(cause, ".") + "."),
		Next:  textParts(v.Next + "."), Tone: toneOf(&v), Verdict: v,
		Version: version, Pipeline: s.Pipeline, Now: clockText(now), Owners: ownersText(s),
	}
	if page := v.Runbook(); page != "" {
		h.Runbook = docs + page
	}
	if v.Since != nil {
		h.Since = "since " + clockText(*v.Since)
		if !now.Before(*v.Since) { // the clock may have been set back since
			h.Since += " (" + status.Ago(now.Sub(*v.Since)) + ")"
		}
	}
	return h
}

// tones are the colours of states, in the order of their tables on the front page: trouble first.
var tones = []string{"bad", "warn", "busy", "good"}

// toneOf returns the colour of a verdict; its word means the same.
func toneOf(v *status.Verdict) string {
	switch v.State {
	case status.StateHealthy:
		return "good"
	case status.StateCopying, status.StateStarting, status.StateHealing, status.StateFenced,
		status.StateElsewhere:
		return "busy"
	case status.StateThrottled, status.StatePaused, status.StateLetters, status.StateGone, status.StateDeleted,
		status.StateLate, status.StateNotReady, status.StateSinkHalted:
		return "warn"
	}
	return "bad"
}

// writeFront writes the page of all tables.
func writeFront(w io.Writer, s *pipeline.Status, past *pipeline.Past, version string, now time.Time) error {
	front := struct {
		pageHead
		Tables []tableRow
		Shows  columns
		Charts []chart
		Events []eventRow
		Cost   []textPart
		// Rehearsals of cutovers, a sentence each.
		Rehearsals []string
	}{
		pageHead: newHead(s, version, now), Charts: charts(together(past.Hours)), Events: eventRows(past.Events),
		Cost: textParts(totalCost(s.Tables)),
	}
	front.Reasons = foldedReasons(s.Reasons)
	for i := range s.Rehearsals {
		front.Rehearsals = append(front.Rehearsals, s.Rehearsals[i].Sentence())
	}
	for i := range s.Tables {
		row := newRow(&s.Tables[i], len(s.Services) > 0)
		row.Spark = sparkline(past.Hours[row.Source])
		front.Tables = append(front.Tables, row)
		front.Shows.add(&s.Tables[i])
	}
	slices.SortStableFunc(front.Tables, func(a, b tableRow) int {
		return cmp.Compare(slices.Index(tones, a.Tone), slices.Index(tones, b.Tone))
	})
	return templates.ExecuteTemplate(w, "front", front)
}

// TablePage is what the page of a table shows beside the status.
type TablePage struct {
	Detail *status.Detail // nil: this process does not own the table, or has not looked at its log yet
	Hour   []latency.Point
	Errors []ErrorLine
	Events []status.Happening // the newest first
}

// writeTable writes the page of one table. Its first line is about all of them: the table is not
// the whole story.
func writeTable(w io.Writer, s *pipeline.Status, t *status.Table, x TablePage, version string, now time.Time) error {
	view := struct {
		pageHead
		tableView
	}{newHead(s, version, now), newTableView(t, len(s.Services) > 0, x)}
	view.Reasons = foldedReasons(t.Reasons)
	return templates.ExecuteTemplate(w, "table", view)
}
