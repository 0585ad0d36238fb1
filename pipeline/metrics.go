package pipeline

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the tables. Labels are the table's source name and nothing that grows.
type metrics struct {
	sourceLag, appliedLag, proofAge, letters, gaps, halted, owner, ahead, foreign *prometheus.GaugeVec
	hottest, largest                                                              *prometheus.GaugeVec
	applied                                                                       *prometheus.CounterVec
}

type tableMetrics struct {
	sourceLag, appliedLag, proofAge, letters, gaps, halted, owner, ahead, foreign prometheus.Gauge
	hottest, largest                                                              prometheus.Gauge
	applied                                                                       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	table := []string{"table"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tailrace_" + name, Help: help}, table)
		if reg != nil {
			reg.MustRegister(g)
		}
		return g
	}
	m := &metrics{
		sourceLag:  gauge("source_lag_seconds", "Age of the newest moment up to which every shard is read into the log; -1 unknown."),
		appliedLag: gauge("applied_lag_seconds", "Age of the newest moment up to which every change is applied by every sink; -1 unknown."),
		proofAge:   gauge("proof_age_seconds", "Age of the newest proof of idleness or progress of every shard; -1 unknown."),
		letters:    gauge("dead_letters", "Changes that a sink refused for good and nobody has handled."),
		gaps:       gauge("gaps", "Ranges of the source that were lost and nobody has accepted."),
		halted:     gauge("table_halted", "1 while the table is halted."),
		owner:      gauge("table_owner", "1 while this process owns the table's log."),
		ahead:      gauge("clock_ahead_seconds", "How far versions run ahead of event time."),
		foreign:    gauge("log_foreign_messages", "Messages in the log that folded as nothing."),
		hottest:    gauge("hottest_row_writes_per_second", "Writes of the target row that was written most, over the last full ten seconds."),
		largest:    gauge("largest_row_growth_bytes", "By how much the shared target row has grown that grew most since this process owns the table; a lower estimate."),
	}
	m.applied = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tailrace_changes_applied_total", Help: "Changes that became durable at Bigtable, by this process."}, table)
	if reg != nil {
		reg.MustRegister(m.applied)
	}
	return m
}

func (m *metrics) of(table string) *tableMetrics {
	return &tableMetrics{
		sourceLag: m.sourceLag.WithLabelValues(table), appliedLag: m.appliedLag.WithLabelValues(table),
		proofAge: m.proofAge.WithLabelValues(table), letters: m.letters.WithLabelValues(table),
		gaps: m.gaps.WithLabelValues(table), halted: m.halted.WithLabelValues(table),
		owner: m.owner.WithLabelValues(table), ahead: m.ahead.WithLabelValues(table),
		foreign: m.foreign.WithLabelValues(table), applied: m.applied.WithLabelValues(table),
		hottest: m.hottest.WithLabelValues(table), largest: m.largest.WithLabelValues(table),
	}
}

// standBy takes back what only the owner of the log knows.
func (m *tableMetrics) standBy() {
	for _, g := range []prometheus.Gauge{m.sourceLag, m.appliedLag, m.proofAge} {
		g.Set(-1)
	}
	m.hottest.Set(0)
	m.largest.Set(0)
}

// showRows sets what is known of the worst rows.
func (m *tableMetrics) showRows(h *heat, now time.Time) {
	m.hottest.Set(h.hottest(now))
	m.largest.Set(float64(h.bulk.largest()))
}

// show sets the gauges from a status, so that metrics and status never disagree.
func (m *tableMetrics) show(s *TableStatus) {
	m.sourceLag.Set(s.SourceLag)
	m.appliedLag.Set(s.AppliedLag)
	m.proofAge.Set(s.SourceLag)
	m.letters.Set(float64(s.DeadLetters))
	m.gaps.Set(float64(s.Gaps))
	m.ahead.Set(s.ClockAhead)
	m.foreign.Set(float64(s.Foreign))
	if s.State == "halted" {
		m.halted.Set(1)
	} else {
		m.halted.Set(0)
	}
}
