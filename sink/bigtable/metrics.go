package bigtable

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/tailrace-cdc/replicator/failure"
)

// classes are what Classify returns: the values of the label outcome, besides "skipped" (the guard
// matched).
var classes = []failure.Class{
	failure.None, failure.Transient, failure.Rejected, failure.Denied, failure.Missing, failure.Canceled, failure.Fatal,
}

// metrics counts per table of Bigtable, which is the label target: several tables of DynamoDB may
// share it.
type metrics struct {
	calls    *prometheus.CounterVec
	rowsRead *prometheus.CounterVec
	retries  *prometheus.CounterVec
	rejected *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	bound    *prometheus.GaugeVec
	most     *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	target := []string{"target"}
	return &metrics{
		calls: f.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_bigtable_calls_total",
			Help: "CheckAndMutateRow calls by how they ended; skipped: the row held the version or a later one."},
			[]string{"target", "outcome"}),
		rowsRead: f.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_bigtable_rows_read_total",
			Help: "Rows read by resyncs and comparisons."}, target),
		retries: f.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_bigtable_retries_total",
			Help: "Calls sent again after a transient failure, or once after a refusal."}, target),
		rejected: f.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_bigtable_rejected_total",
			Help: "Changes that will never be taken, by code."}, []string{"target", "code"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{Name: "tailrace_bigtable_call_seconds",
			Help:    "Duration of single CheckAndMutateRow calls.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}, target),
		inFlight: f.NewGaugeVec(prometheus.GaugeOpts{Name: "tailrace_bigtable_in_flight",
			Help: "CheckAndMutateRow calls in flight."}, target),
		bound: f.NewGaugeVec(prometheus.GaugeOpts{Name: "tailrace_bigtable_concurrency_limit",
			Help: "Calls allowed in flight; adapts to the service."}, target),
		most: f.NewGaugeVec(prometheus.GaugeOpts{Name: "tailrace_bigtable_concurrency_most",
			Help: "What tailrace_bigtable_concurrency_limit never exceeds: bigtable.max_in_flight."}, target),
	}
}

// tableMetrics are the series of one table.
type tableMetrics struct {
	outcomes [failure.Canceled + 1]prometheus.Counter // one for each of classes; None: written
	skipped  prometheus.Counter
	rowsRead prometheus.Counter
	retries  prometheus.Counter
	seconds  prometheus.Observer
	inFlight prometheus.Gauge
	bound    prometheus.Gauge
	most     prometheus.Gauge
	rejected *prometheus.CounterVec
}

func (m *metrics) table(name string) tableMetrics {
	t := tableMetrics{
		skipped:  m.calls.WithLabelValues(name, "skipped"),
		rowsRead: m.rowsRead.WithLabelValues(name),
		retries:  m.retries.WithLabelValues(name),
		seconds:  m.seconds.WithLabelValues(name),
		inFlight: m.inFlight.WithLabelValues(name),
		bound:    m.bound.WithLabelValues(name),
		most:     m.most.WithLabelValues(name),
		rejected: m.rejected.MustCurryWith(prometheus.Labels{"target": name}),
	}
	for _, class := range classes {
		t.outcomes[class] = m.calls.WithLabelValues(name, class.String())
	}
	return t
}
