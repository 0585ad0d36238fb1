package bigtable

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of the sink. Label table is the target table; outcome is a Kind, or "skipped" where the guard matched.
type metrics struct {
	calls    *prometheus.CounterVec
	retries  *prometheus.CounterVec
	rejected *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	bound    *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	table := []string{"table"}
	return &metrics{
		calls: f.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_bigtable_calls_total",
			Help: "CheckAndMutateRow calls by how they ended; skipped: the row held the version or a later one."}, []string{"table", "outcome"}),
		retries: f.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_bigtable_retries_total",
			Help: "Calls sent again after a transient failure."}, table),
		rejected: f.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_bigtable_rejected_total",
			Help: "Changes that will never be taken, by code."}, []string{"table", "code"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{Name: "tailrace_bigtable_call_seconds",
			Help:    "Duration of single CheckAndMutateRow calls.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}, table),
		inFlight: f.NewGaugeVec(prometheus.GaugeOpts{Name: "tailrace_bigtable_in_flight",
			Help: "CheckAndMutateRow calls in flight."}, table),
		bound: f.NewGaugeVec(prometheus.GaugeOpts{Name: "tailrace_bigtable_concurrency_limit",
			Help: "Calls allowed in flight; adapts to the service."}, table),
	}
}

// tableMetrics are one table's series, looked up once.
type tableMetrics struct {
	outcomes [len(kindNames)]prometheus.Counter // by Kind; None: written
	skipped  prometheus.Counter
	retries  prometheus.Counter
	seconds  prometheus.Observer
	inFlight prometheus.Gauge
	bound    prometheus.Gauge
	rejected *prometheus.CounterVec
}

func (m *metrics) table(name string) tableMetrics {
	t := tableMetrics{
		skipped:  m.calls.WithLabelValues(name, "skipped"),
		retries:  m.retries.WithLabelValues(name),
		seconds:  m.seconds.WithLabelValues(name),
		inFlight: m.inFlight.WithLabelValues(name),
		bound:    m.bound.WithLabelValues(name),
		rejected: m.rejected.MustCurryWith(prometheus.Labels{"table": name}),
	}
	for k := range t.outcomes {
		t.outcomes[k] = m.calls.WithLabelValues(name, Kind(k).String())
	}
	return t
}
