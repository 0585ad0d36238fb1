package apply

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/sink/bigtable/hotrow"
)

// Metrics counts what the sinks of all tables applied and refused, by source table.
type Metrics struct {
	applied   *prometheus.CounterVec
	refused   *prometheus.CounterVec // table, sink, code, rule
	latencies latency.Collector
}

// NewMetrics registers the metrics; reg may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		applied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailrace_changes_applied_total",
			Help: "Changes that became durable at Bigtable, by this process."}, []string{"table"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailrace_changes_refused_total",
			Help: "Changes and copied items that became dead letters, by this process; rule is the mapping's, \"\" where none " +
				"takes the item or it cannot be told.",
		}, []string{"table", "sink", "code", "rule"}),
	}
	if reg != nil {
		reg.MustRegister(m.applied, m.refused, &m.latencies)
	}
	return m
}

// Stats is what is known about the writes of one table. It outlives the lives of the table.
type Stats struct {
	Rows    *hotrow.Tracker    // hot and growing rows
	Latency *latency.Histogram // of changes of the stream, until they are durable in Bigtable

	applied prometheus.Counter
	refused *prometheus.CounterVec // sink, code, rule: those of this program and of the mapping, so they are bounded
	// lastApplied is when a change was applied after some were refused for their age, on the
	// service's clock; 0: not in this process.
	lastApplied atomic.Int64
	// began is when the log of the table began, on the service's clock: what was written before is
	// read late, and that says nothing about how long a change takes.
	began atomic.Int64
}

// From notes when the log of the table began.
func (s *Stats) From(began change.Millis) { s.began.Store(int64(began)) }

// Table returns the statistics of a table. log names its hot rows.
func (m *Metrics) Table(source string, log *zap.Logger) *Stats {
	return &Stats{
		Rows: hotrow.New(log, time.Now()), Latency: m.latencies.Table(source), applied: m.applied.WithLabelValues(source),
		refused: m.refused.MustCurryWith(prometheus.Labels{"table": source}),
	}
}

// noteDurable counts changes of an item that have become durable in Bigtable, at a time of the
// service. It takes no lock: it is called for every write, by all workers.
func (s *Stats) noteDurable(jobs []*job, now change.Millis) {
	s.applied.Add(float64(len(jobs)))
	began := change.Millis(s.began.Load())
	for _, j := range jobs {
		s.Latency.Observe(time.Duration(now-max(j.c.Created, began)) * time.Millisecond)
	}
}

// ruleOf returns the rule of the mapping that takes an item; "" where none does or it cannot be
// told.
func (l *DeadLetters) ruleOf(keys, image []byte) string {
	if l.o.Table.Program == nil {
		return ""
	}
	return l.o.Table.Program.RuleOf(new(change.Decoder), keys, image)
}
