package resync

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Metrics counts what the copies of all tables did. Its only label is the source table.
type Metrics struct {
	items, bytes, units *prometheus.CounterVec
	budget, paused      *prometheus.GaugeVec
}

// NewMetrics registers the metrics; reg may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tailrace_copy_" + name, Help: help}, []string{"table"})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tailrace_copy_" + name, Help: help}, []string{"table"})
	}
	m := &Metrics{
		items: counter("items_total", "Items that a copy of the table made durable at Bigtable, by this process."),
		bytes: counter("bytes_total",
			"Bytes, as JSON, of the items that a copy of the table made durable at Bigtable, by this process."),
		units: counter("read_units_total",
			"Read capacity units that copies of the table took to read items, by this process."),
		budget: gauge("read_units_budget", "Read capacity units per second that a copy of the table may take."),
		paused: gauge("paused", "1 while a copy of the table is paused, by an operator or by itself."),
	}
	if reg != nil {
		reg.MustRegister(m.items, m.bytes, m.units, m.budget, m.paused)
	}
	return m
}

// Stats is what is known about the copies of one table. It outlives the lives of the table.
type Stats struct {
	items, bytes, units prometheus.Counter
	budget, paused      prometheus.Gauge

	told string // id of the copy that the log last said is there; the goroutine of the table owns it

	mu     sync.Mutex // covers what follows
	recent float64    // read units, halved every ten seconds
	at     time.Time
}

// Table returns the statistics of a table.
func (m *Metrics) Table(source string) *Stats {
	return &Stats{
		items: m.items.WithLabelValues(source), bytes: m.bytes.WithLabelValues(source),
		units: m.units.WithLabelValues(source), budget: m.budget.WithLabelValues(source),
		paused: m.paused.WithLabelValues(source),
	}
}

// Tell logs how a copy stands when a life begins; c is nil without one. That it was cancelled is
// said once.
func (s *Stats) Tell(log *zap.Logger, c *checkpoint.CopyState, readUnits float64) {
	if c == nil || c.Done() {
		return
	}
	log = log.With(zap.String("copy", c.ID), zap.Int64("items", c.Total().Items))
	switch {
	case c.Canceled:
		if s.told == c.ID {
			log.Warn("the copy is cancelled: the items that it has not copied are missing until they change or a resync")
		}
		s.told = ""
		return
	case c.Paused || c.PausedWhy != "":
		log.Info("the copy is paused", zap.String("reason", pauseReason(c)))
	default:
		log.Info("the copy goes on", zap.Float64("read_units_per_second", readUnits))
	}
	s.told = c.ID
}

// NoteCopy sets the gauges: the budget of a copy that runs, 0 without one, and whether it is
// paused.
func (s *Stats) NoteCopy(budget float64, paused bool) {
	s.budget.Set(budget)
	s.paused.Set(0)
	if paused {
		s.paused.Set(1)
	}
}

func (s *Stats) addPage(pg *page) { s.addItems(int64(pg.Items), int64(pg.Bytes)) }

func (s *Stats) addItems(items, bytes int64) {
	s.items.Add(float64(items))
	s.bytes.Add(float64(bytes))
}

// halfLife is how fast recent reads are forgotten.
const halfLife = 10 * time.Second

func (s *Stats) addUnits(units float64) {
	s.units.Add(units)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decay(time.Now())
	s.recent += units
}

// decay lets the count of recent reads decay by the time passed. The caller holds mu.
func (s *Stats) decay(now time.Time) {
	if !s.at.IsZero() {
		s.recent *= math.Exp2(-now.Sub(s.at).Seconds() / halfLife.Seconds())
	}
	s.at = now
}

// readUnits returns the read units per second of the last seconds.
func (s *Stats) readUnits() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decay(time.Now())
	return math.Round(s.recent*math.Ln2/halfLife.Seconds()*10) / 10
}
