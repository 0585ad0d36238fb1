package latency

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector shows the histograms of tables as one metric. Its zero value is ready for use.
type Collector struct {
	mu     sync.Mutex // covers tables
	tables map[string]*Histogram
}

// Table returns the histogram of a table, which is always the same.
func (c *Collector) Table(source string) *Histogram {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.tables[source]
	if h == nil {
		if c.tables == nil {
			c.tables = map[string]*Histogram{}
		}
		h = &Histogram{}
		c.tables[source] = h
	}
	return h
}

var desc = prometheus.NewDesc("tailrace_replication_latency_seconds",
	"Time from the creation of a change at DynamoDB until it is durable in Bigtable, by the service's clock; "+Resolution+
		". Changes of the stream alone, by this process: no copies, no resyncs.", []string{"table"}, nil)

// Describe sends the metric's description.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) { ch <- desc }

// Collect sends the histogram of each table.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for table, h := range c.tables {
		counts := h.Counts()
		ch <- prometheus.MustNewConstHistogram(desc, counts.Total(), float64(counts.sum)/1000, counts.cumulative(), table)
	}
}

// cumulative returns the counts by upper bound in seconds, each with the counts of the bounds
// below.
func (c *Counts) cumulative() map[float64]uint64 {
	all, n := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, bound := range bounds {
		n += c.buckets[i]
		all[float64(bound)/1000] = n
	}
	return all
}
