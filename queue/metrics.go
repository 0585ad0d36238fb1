package queue

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// metrics are the collectors of the queue, by table.
type metrics struct {
	appends, bytes, outcomeUnknown, fenced, refused, foreign, read, resets *prometheus.CounterVec

	latency                *prometheus.HistogramVec
	used, stored, snapshot *prometheus.GaugeVec
}

// newMetrics registers the collectors; reg may be nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	table := []string{"table"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		opts := prometheus.CounterOpts{Namespace: "tailrace", Subsystem: "queue", Name: name, Help: help}
		return conn.Register(reg, prometheus.NewCounterVec(opts, append(table, labels...)))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		opts := prometheus.GaugeOpts{Namespace: "tailrace", Subsystem: "queue", Name: name, Help: help}
		return conn.Register(reg, prometheus.NewGaugeVec(opts, table))
	}
	return &metrics{
		appends: counter("appends_total", "Entries acknowledged by the log.", "kind"),
		bytes:   counter("append_bytes_total", "Bytes of entries acknowledged by the log."),
		latency: conn.Register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "tailrace", Subsystem: "queue", Name: "append_seconds",
			Help:    "Time from sending an entry to its acknowledgement on disk.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, table)),
		outcomeUnknown: counter("doubts_total", "Appends whose outcome was unknown."),
		fenced:         counter("fenced_total", "Appends refused because another message came first."),
		refused:        counter("refused_total", "Appends refused with nothing stored.", "reason"),
		foreign:        counter("foreign_total", "Messages in the log that are not entries of its chain."),
		read:           counter("read_bytes_total", "Bytes read back from the log."),
		resets:         counter("reader_resets_total", "Times a reader had to ask for the log again."),
		used:           gauge("used_ratio", "Part of the log's size limit in use."),
		stored:         gauge("stored_bytes", "Bytes the log holds."),
		snapshot:       gauge("snapshot_bytes", "Size of the last snapshot of the state."),
	}
}

// tableMetrics are the metrics of one table, looked up once.
type tableMetrics struct {
	m     *metrics
	table string

	bytes, outcomeUnknown, fenced, foreign, read, resets prometheus.Counter
	latency                                              prometheus.Observer
	used, stored, snapshot                               prometheus.Gauge
}

// forTable returns the metrics of a table.
func (m *metrics) forTable(table string) *tableMetrics {
	for _, reason := range []string{"full", "size"} {
		m.refused.WithLabelValues(table, reason) // from zero on: what increases shows the first refusal too
	}
	return &tableMetrics{
		m: m, table: table,
		bytes:          m.bytes.WithLabelValues(table),
		outcomeUnknown: m.outcomeUnknown.WithLabelValues(table),
		fenced:         m.fenced.WithLabelValues(table),
		foreign:        m.foreign.WithLabelValues(table),
		read:           m.read.WithLabelValues(table),
		resets:         m.resets.WithLabelValues(table),
		latency:        m.latency.WithLabelValues(table),
		used:           m.used.WithLabelValues(table),
		stored:         m.stored.WithLabelValues(table),
		snapshot:       m.snapshot.WithLabelValues(table),
	}
}
