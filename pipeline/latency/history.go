package latency

import (
	"math"
	"sync"
	"time"
)

const (
	// Every is how often a history is to be sampled.
	Every = 10 * time.Second

	quantileWindow = 5 * time.Minute // of latencies
	rateWindow     = time.Minute     // of changes per second
	shortestRate   = time.Second     // of two moments between which a rate is computed
	recentSize     = int(quantileWindow/Every) + 1

	pointEvery = 3 // samples
	pointStep  = pointEvery * Every
	pointsKept = int(time.Hour / pointStep)
)

// History remembers samples of a table: about 10 KB, however long it lives. Its methods may be
// called by any goroutine.
type History struct {
	latencies *Histogram

	mu      sync.Mutex // covers what follows
	samples []sample   // in the order of time, at most recentSize
	step    time.Time  // of the clock: the first sample of the next one is a point
	points  []Point    // in the order of time, at most pointsKept
}

type sample struct {
	at     time.Time
	counts Counts
}

// NewHistory returns the history of the table with the latencies counted in h.
func NewHistory(h *Histogram, now time.Time) *History {
	return &History{latencies: h, samples: []sample{{at: now}}, step: now.Truncate(pointStep)}
}

// Point is how a table was at a moment. NaN stands for what was not known.
type Point struct {
	At      time.Time
	P50     float64 // latency in seconds since the point before
	P99     float64
	Rate    float64 // changes per second since the point before
	Pending float64 // changes in the log that Bigtable did not have
	Lag     float64 // seconds
}

// Sample remembers how the table is now: what its histogram has counted, how many changes are
// pending and how many seconds it lags; NaN where that is unknown. The clock decides which samples
// are points, so that tables that began at different times have points of the same moments, and the
// points of a pipeline are their sums.
func (h *History) Sample(now time.Time, pending, lag float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := sample{at: now, counts: h.latencies.Counts()}
	h.samples = appendBounded(h.samples, s, recentSize)
	step := now.Truncate(pointStep)
	if step.Equal(h.step) {
		return
	}
	h.step = step
	before := &h.samples[max(0, len(h.samples)-1-pointEvery)]
	counts := s.counts.Since(&before.counts)
	h.points = appendBounded(h.points, Point{
		At: now, P50: counts.Quantile(0.5), P99: counts.Quantile(0.99),
		Rate: rate(&counts, now.Sub(before.at)), Pending: pending, Lag: lag,
	}, pointsKept)
}

// appendBounded appends to a list that keeps its newest elements.
func appendBounded[T any](list []T, x T, size int) []T {
	if len(list) < size {
		return append(list, x)
	}
	copy(list, list[1:])
	list[len(list)-1] = x
	return list
}

// Recent is what a table did in the last minutes; NaN stands for what is not known.
type Recent struct {
	P50, P99 float64 // latency in seconds in the last five minutes
	Rate     float64 // changes per second that became durable in the last minute
}

// Recent returns what the table did in the last minutes.
func (h *History) Recent(now time.Time) Recent {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := h.latencies.Counts()
	first, since := h.first(now, quantileWindow), h.first(now, rateWindow)
	latencies, changes := counts.Since(&first.counts), counts.Since(&since.counts)
	return Recent{
		P50: latencies.Quantile(0.5), P99: latencies.Quantile(0.99), Rate: rate(&changes, now.Sub(since.at)),
	}
}

// Counts returns what the table's histogram has counted since the start of the process.
func (h *History) Counts() Counts { return h.latencies.Counts() }

// first returns the newest sample that is as old as a window; the oldest one where none is.
func (h *History) first(now time.Time, window time.Duration) *sample {
	i := len(h.samples) - 1
	for i > 0 && now.Sub(h.samples[i].at) < window {
		i--
	}
	return &h.samples[i]
}

// rate returns observations per second; NaN where the time is too short to tell.
func rate(c *Counts, d time.Duration) float64 {
	if d < shortestRate {
		return math.NaN()
	}
	return float64(c.Total()) / d.Seconds()
}

// Restore puts the points of an earlier process before its own, without those that are older than
// an hour. Nothing is known of the time between the two.
func (h *History) Restore(points []Point, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	unknown := math.NaN()
	for _, p := range points {
		if age := now.Sub(p.At); age >= 0 && age < time.Hour {
			h.points = appendBounded(h.points, p, pointsKept)
		}
	}
	if len(h.points) > 0 {
		h.points = appendBounded(h.points, Point{now, unknown, unknown, unknown, unknown, unknown}, pointsKept)
	}
}

// Hour returns the points of the last hour, in the order of time.
func (h *History) Hour() []Point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Point(nil), h.points...)
}
