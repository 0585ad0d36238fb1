package latency

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Resolution describes the precision of a latency, for help texts and people.
const Resolution = "up to one second high: DynamoDB's creation times have whole seconds"

// bounds are the upper bounds of all buckets but the last, in milliseconds. The metric has the same
// buckets as status, so that histogram_quantile and status agree.
var bounds = [...]int64{
	500, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_500, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 90_000,
	120_000, 180_000, 300_000, 600_000, 1_200_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
}

// Histogram counts latencies. Its zero value is ready for use, by any number of goroutines. An
// observation is two atomic additions: nothing waits for another goroutine.
type Histogram struct {
	buckets [len(bounds) + 1]atomic.Uint64
	sum     atomic.Int64 // of milliseconds
}

// Observe counts a latency. The two clocks that it comes from may disagree: a negative one counts
// as zero.
func (h *Histogram) Observe(d time.Duration) {
	ms := max(0, d.Milliseconds())
	i, _ := slices.BinarySearch(bounds[:], ms)
	h.buckets[i].Add(1)
	h.sum.Add(ms)
}

// Counts is what a histogram counted up to a moment, or between two of them.
type Counts struct {
	buckets [len(bounds) + 1]uint64
	sum     int64
}

// Counts returns what was counted so far. Observations that are being counted may be in one of the
// numbers only.
func (h *Histogram) Counts() (c Counts) {
	for i := range h.buckets {
		c.buckets[i] = h.buckets[i].Load()
	}
	c.sum = h.sum.Load()
	return c
}

// Since returns what was counted after an earlier moment of the same histogram.
func (c Counts) Since(earlier *Counts) Counts {
	for i := range c.buckets {
		c.buckets[i] -= earlier.buckets[i]
	}
	c.sum -= earlier.sum
	return c
}

// Total returns the number of observations.
func (c *Counts) Total() (n uint64) {
	for _, b := range c.buckets {
		n += b
	}
	return n
}

// Quantile returns the latency in seconds that a share q of the observations does not exceed,
// interpolated inside of its bucket as Prometheus does it; NaN without observations.
func (c *Counts) Quantile(q float64) float64 {
	total := c.Total()
	if total == 0 {
		return math.NaN()
	}
	rank, below := q*float64(total), 0.0
	for i, n := range c.buckets {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		if i == len(bounds) {
			break // nothing bounds the last bucket
		}
		low := int64(0)
		if i > 0 {
			low = bounds[i-1]
		}
		return (float64(low) + float64(bounds[i]-low)*(rank-below)/float64(n)) / 1000
	}
	return float64(bounds[len(bounds)-1]) / 1000
}
