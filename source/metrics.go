package source

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/change"
)

// metrics are labelled by table, never by shard, because shards are replaced every four hours.
type metrics struct {
	charged   *prometheus.CounterVec   // table
	units     *prometheus.CounterVec   // table
	pages     *prometheus.CounterVec   // table, kind
	records   *prometheus.CounterVec   // table
	expired   *prometheus.CounterVec   // table
	bytes     *prometheus.CounterVec   // table
	skipped   *prometheus.CounterVec   // table
	newest    *prometheus.GaugeVec     // table
	throttled *prometheus.CounterVec   // table
	iterators *prometheus.CounterVec   // table, reason
	parked    *prometheus.GaugeVec     // table
	parks     *prometheus.HistogramVec // table
	calls     *prometheus.HistogramVec // op
	errors    *prometheus.CounterVec   // op, class
	report    func(op string, err error)

	mu     sync.Mutex
	tables map[string]*tableMetrics
}

// opts names a metric of this package.
func opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: "tailrace", Subsystem: "source", Name: name, Help: help}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), labels)
}

func gaugeFunc(name, help string, value func() int64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts(name, help)), func() float64 { return float64(value()) })
}

func histogram(name, help string, buckets []float64, label string) *prometheus.HistogramVec {
	o := opts(name, help)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: o.Namespace, Subsystem: o.Subsystem, Name: o.Name, Help: o.Help, Buckets: buckets,
	}, []string{label})
}

// newMetrics makes the metrics and registers them, unless reg is nil. total is the limit of budget.
func newMetrics(
	reg prometheus.Registerer, budget *PageMemory, total int64, apart func() change.Millis,
	report func(op string, err error),
) (*metrics, error) {
	m := &metrics{
		tables: map[string]*tableMetrics{},
		report: report,
		charged: counter("stream_reads_total",
			"GetRecords calls of shards that the service answered, each of which it charges.", "table"),
		units: counter("read_units_total",
			"Read capacity units of copies, resyncs and comparisons by this process.", "table"),
		pages:   counter("pages_total", "Pages read, by kind: full, part or empty.", "table", "kind"),
		records: counter("records_total", "Records read.", "table"),
		expired: counter("expired_records_total",
			"Records read that are deletions by DynamoDB's time to live. A page that is read again counts again.", "table"),
		bytes: counter("bytes_total", "Bytes of the pages read.", "table"),
		skipped: counter("skipped_records_total",
			"Records before the start time, where the server cannot start there by itself.", "table"),
		newest:    gauge("newest_record_timestamp_seconds", "Creation time of the newest record read.", "table"),
		throttled: counter("throttled_total", "Reads that were throttled.", "table"),
		iterators: counter("iterators_total",
			"Shard iterators asked for, by reason: start, age, expired, invalid or denied.", "table", "reason"),
		parked: gauge("parked_readers", "Readers that wait for memory.", "table"),
		parks: histogram("parked_seconds", "How long readers waited for memory.",
			prometheus.ExponentialBuckets(0.01, 4, 9), "table"),
		calls: histogram("call_seconds", "Duration of calls, retries included.",
			prometheus.ExponentialBuckets(0.001, 2.5, 11), "op"),
		errors: counter("errors_total", "Failed calls by class.", "op", "class"),
	}
	if reg == nil {
		return m, nil
	}
	limitHelp := "Limit of tailrace_source_memory_bytes; where a table's part is less than a page, " +
		"exceeded by up to a page for each table."
	for _, c := range []prometheus.Collector{
		m.charged, m.units, m.pages, m.records, m.expired, m.bytes, m.skipped, m.newest, m.throttled, m.iterators,
		m.parked, m.parks, m.calls, m.errors,
		gaugeFunc("memory_bytes", "Bytes of pages read and not yet released.", budget.InUse),
		gaugeFunc("memory_limit_bytes", limitHelp, func() int64 { return total }),
		parkCollector{budget},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts("time_apart_seconds",
			"How far the Date of the newest reply is from this machine's clock.")), func() float64 {
			return float64(apart()) / 1000
		}),
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// callEnded records a call that has ended.
func (m *metrics) callEnded(ctx context.Context, op string, start time.Time, err error) {
	m.calls.WithLabelValues(op).Observe(time.Since(start).Seconds())
	if !errors.Is(ctx.Err(), context.Canceled) { // a call that the caller gave up says nothing about the service
		m.report(op, err)
	}
	if err != nil {
		m.errors.WithLabelValues(op, classLabel(err)).Inc()
	}
}

// tableMetrics are the series of one table.
type tableMetrics struct {
	charged, units                             prometheus.Counter
	full, part, empty                          prometheus.Counter
	records, deletedByTTL                      prometheus.Counter
	bytes, skipped                             prometheus.Counter
	throttled                                  prometheus.Counter
	newest, parked                             prometheus.Gauge
	parks                                      prometheus.Observer
	start, age, expired, invalidIts, deniedIts prometheus.Counter

	reads readCounts
}

// readCounts are counted beside the series, because a series cannot be read.
type readCounts struct {
	all, full, failed atomic.Uint64
	charged           atomic.Uint64
	units             sum
	records, bytes    atomic.Uint64
	parked            atomic.Int64
}

// sum is a number to which any goroutine may add. Its zero value is 0.
type sum struct{ bits atomic.Uint64 }

func (s *sum) Add(x float64) {
	for {
		old := s.bits.Load()
		if s.bits.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+x)) {
			return
		}
	}
}

func (s *sum) Load() float64 { return math.Float64frombits(s.bits.Load()) }

// countCharged counts a GetRecords call that the service answered.
func (t *tableMetrics) countCharged() {
	t.charged.Inc()
	t.reads.charged.Add(1)
}

// countPage counts what a page holds.
func (t *tableMetrics) countPage(records, bytes int) {
	t.records.Add(float64(records))
	t.bytes.Add(float64(bytes))
	t.reads.records.Add(uint64(records))
	t.reads.bytes.Add(uint64(bytes))
}

// countUnits counts read capacity that a reply has cost.
func (t *tableMetrics) countUnits(units float64) {
	t.units.Add(units)
	t.reads.units.Add(units)
}

// Reads are how the reads of a table's shards ended since the start, and how many readers wait.
type Reads struct {
	All    uint64
	Full   uint64 // with as many records as fit into a page: there is more
	Failed uint64 // throttled, or not answered: they are repeated
	Parked int    // readers that wait for memory now

	Charged uint64  // calls that the service answered: also those with a reply that was dropped
	Units   float64 // read capacity of scans and of reads of items

	Records, Bytes uint64 // of the pages that were read
}

// Reads returns how the reads of a table ended.
func (s *Source) Reads(table string) Reads {
	if s.metrics == nil { // it was not opened
		return Reads{}
	}
	c := &s.metrics.table(table).reads
	return Reads{
		All: c.all.Load(), Full: c.full.Load(), Failed: c.failed.Load(), Parked: int(max(c.parked.Load(), 0)),
		Charged: c.charged.Load(), Units: c.units.Load(), Records: c.records.Load(), Bytes: c.bytes.Load(),
	}
}

// table returns the series of a table, which its readers share.
func (m *metrics) table(name string) *tableMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tables[name]; t != nil {
		return t
	}
	page := func(kind string) prometheus.Counter { return m.pages.WithLabelValues(name, kind) }
	its := func(reason string) prometheus.Counter { return m.iterators.WithLabelValues(name, reason) }
	t := &tableMetrics{
		charged: m.charged.WithLabelValues(name), units: m.units.WithLabelValues(name),
		full: page("full"), part: page("part"), empty: page("empty"),
		records: m.records.WithLabelValues(name), deletedByTTL: m.expired.WithLabelValues(name),
		bytes:     m.bytes.WithLabelValues(name),
		skipped:   m.skipped.WithLabelValues(name),
		throttled: m.throttled.WithLabelValues(name), newest: m.newest.WithLabelValues(name),
		parked: m.parked.WithLabelValues(name), parks: m.parks.WithLabelValues(name),
		start: its("start"), age: its("age"), expired: its("expired"), invalidIts: its("invalid"),
		deniedIts: its("denied"),
	}
	m.tables[name] = t
	return t
}

// parkCollector measures at scrape time how long readers have waited for memory.
type parkCollector struct{ budget *PageMemory }

var oldestParkDesc = prometheus.NewDesc("tailrace_source_parked_oldest_seconds",
	"How long the reader that waits longest for memory has waited.", nil, nil)

func (c parkCollector) Describe(ch chan<- *prometheus.Desc) { ch <- oldestParkDesc }

func (c parkCollector) Collect(ch chan<- prometheus.Metric) {
	var oldest float64
	if n, since := c.budget.Parked(); n > 0 {
		oldest = time.Since(since).Seconds()
	}
	ch <- prometheus.MustNewConstMetric(oldestParkDesc, prometheus.GaugeValue, oldest)
}
