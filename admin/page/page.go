package page

import (
	"cmp"
	"embed"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/admin/errlog"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

//go:embed page.html style.css page.js icon.svg
var files embed.FS

var templates = template.Must(template.ParseFS(files, "page.html"))

// Policy lets a page load its own style sheet, script and icon, and nothing else.
const Policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Assets serves style sheet, script and icon below /page/.
func Assets() http.Handler {
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

// head is what both pages begin and end with.
type head struct {
	Line, State, Since string
	Cause, Next        []part
	Tone               string // good, busy, warn or bad
	Verdict            status.Verdict
	Reasons            [][]part
	Events             string // where the page hears that it has changed
	Version, Pipeline  string
	Now                string
}

func newHead(s *pipeline.Status, version, path string, now time.Time) head {
	v := s.Verdict
	cause := v.Cause
	if v.Others > 0 {
		cause += "; and " + count(v.Others, "further reason")
	}
	h := head{
		Line: v.Line(now), State: strings.ToUpper(v.State[:1]) + v.State[1:],
		Cause: parts(strings.TrimSuffix(cause, ".") + "."),
		Next:  parts(v.Next + "."), Tone: toneOf(&v), Verdict: v, Events: "/events?page=" + url.QueryEscape(path),
		Version: version, Pipeline: s.Pipeline, Now: clock(now),
	}
	if v.Since != nil {
		h.Since = "since " + clock(*v.Since)
		if !now.Before(*v.Since) { // the clock may have been set back since
			h.Since += " (" + status.Ago(now.Sub(*v.Since)) + ")"
		}
	}
	return h
}

// tones are the colours of states, in the order of their tables on the front page: trouble first.
var tones = []string{"bad", "warn", "busy", "good"}

// toneOf returns the colour of a verdict; its word says the same.
func toneOf(v *status.Verdict) string {
	switch v.State {
	case status.StateHealthy:
		return "good"
	case status.StateCopying, status.StateStarting, status.StateHealing, status.StateFenced,
		status.StateElsewhere:
		return "busy"
	case status.StateThrottled, status.StatePaused, status.StateLetters, status.StateGone, status.StateLate,
		status.StateNotReady:
		return "warn"
	}
	return "bad"
}

// WriteFront writes the page of all tables.
func WriteFront(w io.Writer, s *pipeline.Status, version string, now time.Time) error {
	front := struct {
		head
		Tables []row
		Shows  columns
	}{head: newHead(s, version, "/", now)}
	for _, r := range s.Reasons {
		front.Reasons = append(front.Reasons, parts(r))
	}
	for i := range s.Tables {
		front.Tables = append(front.Tables, newRow(&s.Tables[i], len(s.Services) > 0))
		front.Shows.add(&s.Tables[i])
	}
	slices.SortStableFunc(front.Tables, func(a, b row) int {
		return cmp.Compare(slices.Index(tones, a.Tone), slices.Index(tones, b.Tone))
	})
	return templates.ExecuteTemplate(w, "front", front)
}

// Table is what the page of a table shows beside the status.
type Table struct {
	Detail *status.Detail // nil: this process does not own the table, or has not looked at its log yet
	Hour   []latency.Point
	Errors []errlog.Line
}

// WriteTable writes the page of one table. Its first line is about all of them: the table is not the whole story.
func WriteTable(w io.Writer, s *pipeline.Status, t *status.Table, x Table, version string, now time.Time) error {
	view := struct {
		head
		tableView
	}{newHead(s, version, "/table/"+t.Source, now), newTableView(t, len(s.Services) > 0, x)}
	for _, r := range t.Reasons {
		view.Reasons = append(view.Reasons, parts(r))
	}
	return templates.ExecuteTemplate(w, "table", view)
}
