package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// How many events a page shows.
const (
	frontEvents = 40
	tableEvents = 100
)

// pages serves the status page.
type pages struct{ health Health }

// errUnknownTable is returned for a path that names no table.
var errUnknownTable = errors.New("no such table")

// serveFront replies with the page of all tables: as HTML to a browser, else as text.
func (p pages) serveFront(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		p.serveHTML(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept")
	s := p.health.Status()
	writeText(w, &s, time.Now())
}

// serveTable replies with the page of a table.
func (p pages) serveTable(w http.ResponseWriter, r *http.Request) { p.serveHTML(w, r) }

func (p pages) serveHTML(w http.ResponseWriter, r *http.Request) {
	body, err := p.render(r.Context(), r.URL.Path)
	switch {
	case errors.Is(err, errUnknownTable):
		http.NotFound(w, r)
		return
	case err != nil:
		http.Error(w, "render page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Vary": "Accept",
		"Content-Security-Policy": pagePolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"X-Frame-Options": "DENY",
	} {
		w.Header().Set(name, value)
	}
	_, _ = w.Write(body) // the reader may have gone
}

// render returns the HTML of the page at a path.
func (p pages) render(ctx context.Context, path string) ([]byte, error) {
	s := p.health.Status()
	var b bytes.Buffer
	name, isTable := strings.CutPrefix(path, "/table/")
	if !isTable {
		past := p.health.Past("", frontEvents)
		err := writeFront(&b, &s, &past, p.health.Version(), time.Now())
		return b.Bytes(), err
	}
	i := slices.IndexFunc(s.Tables, func(t pipeline.TableStatus) bool { return t.Source == name })
	if i < 0 {
		return nil, errUnknownTable
	}
	table, _ := p.health.Table(ctx, name)
	table.Events = p.health.Past(name, tableEvents).Events
	err := writeTable(&b, &s, &s.Tables[i], table, p.health.Version(), time.Now())
	return b.Bytes(), err
}

// writeText writes the front page for a terminal. Its first line is the same as on the HTML page.
func writeText(w io.Writer, s *pipeline.Status, now time.Time) {
	fmt.Fprintln(w, s.Verdict.Line(now))
	for _, r := range s.Reasons {
		fmt.Fprintf(w, "  not ready: %s\n", r)
	}
	fmt.Fprint(w, `
/status    what `+"`replicator status --json`"+` prints
/metrics   Prometheus
/livez     loops are running, the queue is healthy
/startupz  the state is loaded, owning or standing by
/readyz    every table progresses or is idle
`)
}
