package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// health is a replicator in a state of the test's choice.
type health struct {
	live, started error
	reasons       []string
}

func (h *health) Live() error             { return h.live }
func (h *health) Started() error          { return h.started }
func (h *health) Ready() (bool, []string) { return len(h.reasons) == 0, h.reasons }
func (h *health) Version() string         { return "v1.2.3" }

// Status returns that of two tables, of which Orders has the reasons.
func (h *health) Status() pipeline.Status {
	s := pipeline.Summarize("shop", []pipeline.TableStatus{
		{Source: "Users", State: "running", Retention: 80_000}, {Source: "Orders", State: "running", Retention: 80_000},
	})
	s.Fail(h.reasons, nil)
	return s
}

func (h *health) Table(_ context.Context, source string) (TablePage, bool) {
	return TablePage{}, source == "Users" || source == "Orders"
}

func (h *health) Past(string, int) pipeline.Past { return pipeline.Past{} }

func serve(t *testing.T, h Health, reg prometheus.Gatherer) (base string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, ln, Options{Health: h, Metrics: reg}, defaultLimits)
	return "http://" + ln.Addr().String()
}

// serveOn serves until the test ends.
func serveOn(t *testing.T, ln net.Listener, o Options, l limits) {
	t.Helper()
	o.Log = zaptest.NewLogger(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveWithin(ctx, ln, o, Handler(o.Health, o.Metrics), l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t)
	})
}

func get(t *testing.T, url, accept string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestEachProbeAnswersItsOwnQuestion(t *testing.T) {
	h := &health{}
	reg := prometheus.NewRegistry()
	up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tailrace_test", Help: "x"})
	reg.MustRegister(up)
	base := serve(t, h, reg)

	for _, c := range []struct {
		name   string
		health health
		want   map[string]int
	}{
		{"all well", health{}, map[string]int{"/livez": 200, "/startupz": 200, "/readyz": 200}},
		{"loading", health{started: errors.New("loading state of Orders"), reasons: []string{"Orders: loading"}},
			map[string]int{"/livez": 200, "/startupz": 503, "/readyz": 503}},
		{"halted table", health{reasons: []string{"Orders: halted: gap", "Users: 3 dead letters"}},
			map[string]int{"/livez": 200, "/startupz": 200, "/readyz": 503}},
		{"queue broken", health{live: errors.New("queue: disk full")},
			map[string]int{"/livez": 503, "/startupz": 200, "/readyz": 200}},
	} {
		*h = c.health
		for path, want := range c.want {
			code, body := get(t, base+path, "")
			if code != want {
				t.Errorf("%s: %s = %d, want %d", c.name, path, code, want)
			}
			if want == 503 && strings.HasPrefix(body, "ok") {
				t.Errorf("%s: %s gives no reason: %q", c.name, path, body)
			}
		}
	}

	*h = health{reasons: []string{"Orders: halted: gap"}}
	for path, want := range map[string]string{
		"/metrics": "tailrace_test 0",
		"/status":  `"pipeline": "shop"`,
		"/":        "  not ready: Orders: halted: gap",
	} {
		if code, body := get(t, base+path, ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s = %d %q, want %q in it", path, code, body, want)
		}
	}
	if code, body := get(t, base+"/readyz", "application/json"); code != 503 ||
		!strings.Contains(body, `"Orders: halted: gap"`) || !strings.Contains(body, `"schema": 1`) {
		t.Errorf("JSON verdict = %d %q", code, body)
	}
	if code, _ := get(t, base+"/nothing", ""); code != 404 {
		t.Errorf("unknown path = %d", code)
	}
}

func TestLostListenerIsAnError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	o := Options{Health: &health{}, Metrics: prometheus.NewRegistry(), Log: zaptest.NewLogger(t)}
	if err := Serve(t.Context(), ln, o); err == nil {
		t.Error("a closed listener was served")
	}
}
