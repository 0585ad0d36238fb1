package queue

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what the log does, per table. Lag is a subtraction of the pipeline's gauges; here are the
// queue's own.
type metrics struct {
	appends  *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	doubts   *prometheus.CounterVec
	fenced   *prometheus.CounterVec
	refused  *prometheus.CounterVec
	foreign  *prometheus.CounterVec
	read     *prometheus.CounterVec
	resets   *prometheus.CounterVec
	used     *prometheus.GaugeVec
	stored   *prometheus.GaugeVec
	snapshot *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	table := []string{"table"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tailrace", Subsystem: "queue", Name: name, Help: help}, append(table, labels...)))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tailrace", Subsystem: "queue", Name: name, Help: help}, table))
	}
	return &metrics{
		appends: counter("appends_total", "Entries acknowledged by the log.", "kind"),
		bytes:   counter("append_bytes_total", "Bytes of entries acknowledged by the log."),
		latency: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "tailrace", Subsystem: "queue", Name: "append_seconds", Help: "Time from sending an entry to its acknowledgement on disk.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, table)),
		doubts:   counter("doubts_total", "Appends whose outcome was unknown."),
		fenced:   counter("fenced_total", "Appends refused because another message came first."),
		refused:  counter("refused_total", "Appends refused with nothing stored.", "reason"),
		foreign:  counter("foreign_total", "Messages in the log that are no entries of its chain."),
		read:     counter("read_bytes_total", "Bytes read back from the log."),
		resets:   counter("reader_resets_total", "Times a reader had to ask for the log again."),
		used:     gauge("used_ratio", "Part of the log's size limit in use."),
		stored:   gauge("stored_bytes", "Bytes the log holds."),
		snapshot: gauge("snapshot_bytes", "Size of the last snapshot of the state."),
	}
}

// diskMetrics compare the volume of an embedded store with what the logs may take.
type diskMetrics struct{ available, untaken, low prometheus.Gauge }

func newDiskMetrics(reg prometheus.Registerer) *diskMetrics {
	gauge := func(name, help string) prometheus.Gauge {
		return register(reg, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tailrace", Subsystem: "queue", Name: name, Help: help}))
	}
	return &diskMetrics{
		available: gauge("disk_available_bytes", "Bytes left for the logs on the volume of the embedded queue."),
		untaken:   gauge("disk_untaken_bytes", "Bytes that the logs may still take until each has reached queue.max_bytes."),
		low:       gauge("disk_low", "1 while reading pauses because the volume has little room left."),
	}
}

func (m *diskMetrics) show(d Disk) {
	m.available.Set(float64(d.Left))
	m.untaken.Set(float64(d.Untaken))
	m.low.Set(0)
	if d.Low {
		m.low.Set(1)
	}
}

// register returns the collector that reg already has under this description, so that a second Queue on one
// registry counts in the same place.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	if err := reg.Register(c); err != nil {
		if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
			return already.ExistingCollector.(C)
		}
		panic(err) // two collectors of one name: a programming error
	}
	return c
}

// tableMetrics are those of one table, looked up once.
type tableMetrics struct {
	m     *metrics
	table string

	bytes, doubts, fenced, foreign, read, resets prometheus.Counter
	latency                                      prometheus.Observer
	used, stored, snapshot                       prometheus.Gauge
}

func (m *metrics) of(table string) *tableMetrics {
	return &tableMetrics{
		m: m, table: table,
		bytes: m.bytes.WithLabelValues(table), doubts: m.doubts.WithLabelValues(table), fenced: m.fenced.WithLabelValues(table),
		foreign: m.foreign.WithLabelValues(table), read: m.read.WithLabelValues(table), resets: m.resets.WithLabelValues(table),
		latency: m.latency.WithLabelValues(table),
		used:    m.used.WithLabelValues(table), stored: m.stored.WithLabelValues(table), snapshot: m.snapshot.WithLabelValues(table),
	}
}
