package daemon

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/config"
)

// TestMetricsAreSentToACollector: what Prometheus would read, with the name of the process, at the
// latest at its end.
func TestMetricsAreSentToACollector(t *testing.T) {
	sent := make(chan *v1.ExportMetricsServiceRequest, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		data, err := io.ReadAll(body)
		got := &v1.ExportMetricsServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(data, got)
		}
		if err != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		sent <- got
	}))
	defer collector.Close()
	cfg := config.Default()
	cfg.Pipeline, cfg.Metrics.Endpoint = "shop", collector.URL
	reg := prometheus.NewRegistry()
	letters := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tailrace_dead_letters"})
	reg.MustRegister(letters)
	letters.Set(7)
	p, err := PushMetrics(t.Context(), &cfg, Build{Version: "0.1.0"}, "tailrace-0", reg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	p.End()
	got := (<-sent).GetResourceMetrics()
	if len(got) != 1 {
		t.Fatalf("%d resources", len(got))
	}
	names := map[string]string{}
	for _, a := range got[0].GetResource().GetAttributes() {
		names[a.GetKey()] = a.GetValue().GetStringValue()
	}
	if names["service.name"] != "tailrace" || names["service.namespace"] != "shop" ||
		names["service.instance.id"] != "tailrace-0" || names["service.version"] != "0.1.0" {
		t.Errorf("%v", names)
	}
	found := 0.0
	for _, s := range got[0].GetScopeMetrics() {
		for _, m := range s.GetMetrics() {
			if m.GetName() == "tailrace_dead_letters" {
				found = m.GetGauge().GetDataPoints()[0].GetAsDouble()
			}
		}
	}
	if found != 7 {
		t.Errorf("dead letters: %v", found)
	}
}
