package dashboard

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	engine "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

var promql = parser.NewParser(parser.Options{})

// prometheus is a Prometheus that is given its scrapes: its storage and its engine.
type prometheus struct {
	t        *testing.T
	db       *tsdb.DB
	engine   *engine.Engine
	now      time.Time       // of the last scrape
	families map[string]bool // that were scraped
}

// interval is the time between two scrapes, as the storage sees it.
const interval = 15 * time.Second

func newEngine(t *testing.T) *prometheus {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &prometheus{
		t: t, db: db, now: time.Now(), families: map[string]bool{},
		engine: engine.NewEngine(engine.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: promql}),
	}
}

// scrape stores what a replicator replied to /metrics.
func (p *prometheus) scrape(body []byte) {
	p.t.Helper()
	p.now = p.now.Add(interval)
	at := p.now.UnixMilli()
	text, err := textparse.New(body, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	app := p.db.Appender(context.Background())
	for {
		kind, err := text.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.t.Fatal(err)
		}
		switch kind {
		case textparse.EntryType:
			name, _ := text.Type()
			p.families[string(name)] = true
		case textparse.EntrySeries:
			_, _, v := text.Series()
			var series labels.Labels
			text.Labels(&series)
			b := labels.NewBuilder(series)
			b.Set("job", "tailrace").Set("instance", "replicator:9464") // as Prometheus adds them
			if _, err := app.Append(0, b.Labels(), at, v); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	if err := app.Commit(); err != nil {
		p.t.Fatal(err)
	}
}

// evaluate returns the labels of the series that a query finds now.
func (p *prometheus) evaluate(expr string) (found []labels.Labels) {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(context.Background(), p.db, nil, expr, p.now)
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	result := q.Exec(context.Background())
	vector, err := result.Vector()
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	for _, s := range vector {
		found = append(found, s.Metric)
	}
	return found
}
