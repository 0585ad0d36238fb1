package shadow

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
)

// Metrics shows reports as metrics of Prometheus. Labels have patterns, and no keys or values.
type Metrics struct {
	// Report returns what was seen so far.
	Report func() (*Report, error)
}

var (
	requestsDesc = prometheus.NewDesc("tailrace_shadow_requests_total",
		"Requests that the front passed on, by what became of their copy.", []string{"result"}, nil)
	replayedDesc = prometheus.NewDesc("tailrace_shadow_replayed_total",
		"Reads that were made in Bigtable too.", []string{"pattern"}, nil)
	itemsDesc = prometheus.NewDesc("tailrace_shadow_items_total",
		"Items that differed at first, by what became of them: mismatch, settled or undecided.",
		[]string{"pattern", "result"}, nil)
	skippedDesc = prometheus.NewDesc("tailrace_shadow_skipped_total",
		"Reads that were not made in Bigtable, by reason.", []string{"reason"}, nil)
	secondsDesc = prometheus.NewDesc("tailrace_shadow_seconds",
		"Time of a request, by side: dynamodb as the application sees it, bigtable from this host.",
		[]string{"pattern", "side"}, nil)
	bytesDesc = prometheus.NewDesc("tailrace_shadow_response_bytes",
		"Sizes of answers of DynamoDB, as they were sent.", []string{"pattern"}, nil)
)

// Describe implements prometheus.Collector.
func (*Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, replayedDesc, itemsDesc, skippedDesc, secondsDesc, bytesDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	r, err := m.Report()
	if err != nil {
		to <- prometheus.NewInvalidMetric(requestsDesc, err)
		return
	}
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(requestsDesc, r.Passed.Taken, "taken")
	count(requestsDesc, r.Passed.Unsampled, "unsampled")
	count(requestsDesc, r.Passed.Dropped-r.unstored, "dropped") // a counter does not fall
	skipped := map[pattern.Reason]int64{}
	counts := r.Counts.ByText()
	for i := range counts {
		c := &counts[i]
		text := c.Pattern.Text()
		to <- histogram(secondsDesc, &c.Micros, 1e-6, text, "dynamodb")
		to <- histogram(bytesDesc, &c.Bytes, 1, text)
		x := c.Replay
		if x == nil {
			continue
		}
		count(replayedDesc, x.Replayed, text)
		count(itemsDesc, x.Wrong(), text, "mismatch")
		count(itemsDesc, x.Equal, text, "settled")
		// Without those that wait: a counter does not fall.
		count(itemsDesc, x.Differed-x.Equal-x.Wrong()-x.Waiting(), text, "undecided")
		to <- histogram(secondsDesc, &x.Micros, 1e-6, text, "bigtable")
		for why, n := range x.Skipped {
			skipped[why] += n
		}
	}
	for why, n := range skipped {
		count(skippedDesc, n, string(why))
	}
}

// histogram returns a histogram in a unit, with the bounds of the bars of the page.
func histogram(d *prometheus.Desc, h *pattern.Histogram, unit float64, labels ...string) prometheus.Metric {
	bounds := longest
	if unit == 1 {
		bounds = sizes
	}
	buckets, n := map[float64]uint64{}, int64(0)
	for i, within := range h.Within(bounds) {
		if n += within; i < len(bounds) {
			buckets[float64(bounds[i])*unit] = uint64(n)
		}
	}
	return prometheus.MustNewConstHistogram(d, uint64(h.N), float64(h.Sum)*unit, buckets, labels...)
}

// sizes are the bounds of sizes of answers, in bytes.
var sizes = []int64{256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
