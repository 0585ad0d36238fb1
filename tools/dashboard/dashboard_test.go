// Package dashboard evaluates every query of the Grafana dashboards with Prometheus' own engine,
// over the metrics of a replicator that runs.
package dashboard

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// query is one query of a panel.
type query struct {
	panel, expr, legend string
}

func (q query) String() string { return q.panel + ": " + q.expr }

// panel is what this test reads of a panel.
type panel struct {
	Title       string
	Type        string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Datasource struct{ UID string }
		Expr       string
		Legend     string `json:"legendFormat"`
	}
}

// variables are the dashboard's, with a value that Grafana would put in their place.
var variables = strings.NewReplacer("$job", ".*", "$table", ".*", "$__rate_interval", "1m")

// queries returns all queries of all dashboards, of their panels and of their annotations.
func queries(t *testing.T) (all []query) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	for _, file := range files {
		for _, p := range panels(t, file) {
			for _, q := range p.Targets {
				all = append(all, query{p.Title, variables.Replace(q.Expr), q.Legend})
			}
		}
		for _, a := range annotations(t, file) {
			all = append(all, query{a.Name, variables.Replace(a.Expr), a.TitleFormat + a.TextFormat})
		}
	}
	return all
}

func panels(t *testing.T, file string) []panel {
	t.Helper()
	var board struct{ Panels []panel }
	read(t, file, &board)
	return board.Panels
}

// read decodes a dashboard.
func read(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// annotation is what this test reads of an annotation.
type annotation struct {
	Name        string
	Expr        string
	TitleFormat string
	TextFormat  string
}

// annotations returns the annotations of a dashboard but for its alerts: no alert fires here.
func annotations(t *testing.T, file string) (all []annotation) {
	t.Helper()
	var board struct{ Annotations struct{ List []annotation } }
	read(t, file, &board)
	for _, a := range board.Annotations.List {
		if !strings.Contains(a.Expr, "ALERTS{") {
			all = append(all, a)
		}
	}
	return all
}

// runbookLink is a link from a dashboard into the operations manual.
var runbookLink = regexp.MustCompile(`"https://[^"]*/docs/operations\.md(?:#(\w+))?"`)

// TestLinksLeadToTheRunbook: each link has its entry in docs/operations.md, and each number of the
// first row that means trouble has a link.
func TestLinksLeadToTheRunbook(t *testing.T) {
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	board, err := os.ReadFile("../../deploy/grafana/dashboards/tailrace.json")
	if err != nil {
		t.Fatal(err)
	}
	links := runbookLink.FindAllStringSubmatch(string(board), -1)
	if len(links) != 9 {
		t.Errorf("%d links, want one of the dashboard and one of each of the first eight numbers", len(links))
	}
	for _, l := range links {
		if l[1] != "" && !strings.Contains(strings.ToLower(string(manual)), "\n### "+l[1]+"\n") {
			t.Errorf("docs/operations.md has no entry %s", l[1])
		}
	}
}

// TestPanels: each panel says what it shows, reads the data source that the user chooses, and
// covers no other.
func TestPanels(t *testing.T) {
	files, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		titles, taken := map[string]bool{}, map[[2]int]string{}
		for _, p := range panels(t, file) {
			if titles[p.Title] {
				t.Errorf("%s: two panels are called %q", file, p.Title)
			}
			titles[p.Title] = true
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if other, ok := taken[at]; ok {
						t.Fatalf("%s: %q covers %q", file, p.Title, other)
					}
					taken[at] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Description == "" || len(p.Targets) == 0 {
				t.Errorf("%s: %q has %d queries and the description %q", file, p.Title, len(p.Targets), p.Description)
			}
			for _, q := range p.Targets {
				if q.Datasource.UID != "${datasource}" {
					t.Errorf("%s: %q reads the data source %q", file, p.Title, q.Datasource.UID)
				}
			}
		}
	}
}

// unshown are metrics that no panel shows, and why.
var unshown = map[string]string{}

// TestEveryQueryHasAResult: each query finds series in the metrics of a replicator that copies,
// replicates, archives, compares and has a dead letter; its legend names labels that these series
// have; and each metric is in some panel.
func TestEveryQueryHasAResult(t *testing.T) {
	all := queries(t)
	r := start(t)
	e := newEngine(t)
	left := slices.Clone(all)
	for began := time.Now(); len(left) > 0; {
		r.work()
		e.scrape(r.metrics())
		left = slices.DeleteFunc(left, func(q query) bool {
			found := e.evaluate(q.expr)
			for _, series := range found {
				began = time.Now() // the deadline is one without progress
				checkLegend(t, q, series)
			}
			return len(found) > 0
		})
		if time.Since(began) > time.Minute {
			for _, q := range left {
				t.Errorf("no series: %s", q)
			}
			break
		}
	}
	shown := map[string]bool{}
	for _, q := range all {
		for _, name := range metricsOf(t, q.expr) {
			shown[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.families)) {
		if strings.HasPrefix(name, "tailrace_") && !shown[name] && unshown[name] == "" {
			t.Errorf("no panel shows %s", name)
		}
	}
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// checkLegend: a legend that names a label which the series does not have is shown with a hole.
func checkLegend(t *testing.T, q query, series labels.Labels) {
	t.Helper()
	for _, m := range placeholder.FindAllStringSubmatch(q.legend, -1) {
		if !series.Has(m[1]) {
			t.Errorf("the legend names %s, which %s has not: %s", m[1], series, q)
		}
	}
}

// metricsOf returns the families whose samples an expression selects.
func metricsOf(t *testing.T, expr string) (names []string) {
	t.Helper()
	e, err := promql.ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			names = append(names, strings.TrimSuffix(s.Name, "_bucket"))
		}
		return nil
	})
	return names
}
