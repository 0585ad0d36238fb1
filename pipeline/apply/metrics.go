package apply

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/sink/bigtable/hotrow"
)

// Metrics counts what the sinks of all tables applied. Its only label is the source table.
type Metrics struct{ applied *prometheus.CounterVec }

// NewMetrics registers the metrics; reg may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{applied: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tailrace_changes_applied_total",
		Help: "Changes that became durable at Bigtable, by this process."}, []string{"table"})}
	if reg != nil {
		reg.MustRegister(m.applied)
	}
	return m
}

// Stats is what is known about the writes of one table. It outlives the lives of the table.
type Stats struct {
	Rows *hotrow.Tracker // hot and growing rows

	applied prometheus.Counter
	// lastApplied is when a change was applied after some were refused for their age, on the service's clock; 0: not in
	// this process.
	lastApplied atomic.Int64
}

// Table returns the statistics of a table. log names its hot rows.
func (m *Metrics) Table(source string, log *zap.Logger) *Stats {
	return &Stats{Rows: hotrow.New(log, time.Now()), applied: m.applied.WithLabelValues(source)}
}
