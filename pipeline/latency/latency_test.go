package latency

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestQuantileLiesInTheBucketOfItsRank(t *testing.T) {
	var h Histogram
	if c := h.Counts(); !math.IsNaN(c.Quantile(0.5)) {
		t.Errorf("the median of nothing is %v", c.Quantile(0.5))
	}
	for range 99 {
		h.Observe(1200 * time.Millisecond)
	}
	h.Observe(-time.Second) // clocks disagree
	h.Observe(70 * time.Second)
	c := h.Counts()
	for q, want := range map[float64][2]float64{0.001: {0, 0.5}, 0.5: {1, 1.5}, 0.98: {1, 1.5}, 1: {60, 90}} {
		if got := c.Quantile(q); got < want[0] || got > want[1] {
			t.Errorf("quantile %v is %v, want one in %v", q, got, want)
		}
	}
	h.Observe(1000 * time.Hour)
	if c = h.Counts(); c.Quantile(1) != 86_400 {
		t.Errorf("beyond the last bound: %v", c.Quantile(1))
	}
}

// TestHistoryForgetsWhatIsOlderThanItsWindows: a slow minute an hour ago is no latency of now.
func TestHistoryForgetsWhatIsOlderThanItsWindows(t *testing.T) {
	var h Histogram
	at := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	x := NewHistory(&h, at)
	if r := x.Recent(at); !math.IsNaN(r.P50) || !math.IsNaN(r.Rate) {
		t.Errorf("at the start: %+v", r)
	}
	for range 600 {
		h.Observe(40 * time.Second)
	}
	if r := x.Recent(at.Add(10 * time.Second)); r.P99 < 30 || r.P99 > 45 || r.Rate != 60 {
		t.Errorf("after 600 changes in ten seconds: %+v", r)
	}
	for i := range 400 {
		x.Sample(at.Add(time.Duration(i+1)*Every), float64(i), math.NaN())
	}
	now := at.Add(400 * Every)
	if r := x.Recent(now); !math.IsNaN(r.P99) || r.Rate != 0 {
		t.Errorf("an hour later: %+v", r)
	}
	h.Observe(900 * time.Millisecond)
	if r := x.Recent(now.Add(time.Second)); r.P99 < 0.5 || r.P99 > 1 {
		t.Errorf("after one more change: %+v", r)
	}
	hour := x.Hour()
	if len(hour) != pointsKept || hour[0].At.Before(now.Add(-time.Hour)) || hour[len(hour)-1].Pending != 398 {
		t.Errorf("%d points from %v, the last %+v", len(hour), hour[0].At, hour[len(hour)-1])
	}
	if cap(x.samples) > 2*recentSize || len(x.samples) != recentSize {
		t.Errorf("%d samples in room for %d", len(x.samples), cap(x.samples))
	}
}

func TestMetricCountsEachTable(t *testing.T) {
	var c Collector
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(&c)
	c.Table("Orders").Observe(2500 * time.Millisecond)
	c.Table("Orders").Observe(90 * time.Minute)
	c.Table("Users")
	all, err := reg.Gather()
	if err != nil || len(all) != 1 || len(all[0].GetMetric()) != 2 {
		t.Fatalf("%v: %v", all, err)
	}
	h := all[0].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 2 || h.GetSampleSum() != 5402.5 {
		t.Errorf("%v", h)
	}
	for _, b := range h.GetBucket() {
		want := uint64(0)
		for _, observed := range []float64{2.5, 5400} {
			if observed <= b.GetUpperBound() {
				want++
			}
		}
		if b.GetCumulativeCount() != want {
			t.Errorf("up to %v: %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
	}
	if !strings.Contains(all[0].GetHelp(), "whole seconds") {
		t.Errorf("the help does not say the resolution: %s", all[0].GetHelp())
	}
	if n := testutil.CollectAndCount(&c); n != 2 {
		t.Errorf("%d series", n)
	}
}

// TestObservationsOfManyWorkersAreCounted: run with the race detector.
func TestObservationsOfManyWorkersAreCounted(t *testing.T) {
	var h Histogram
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for i := range 10_000 {
				h.Observe(time.Duration(i) * time.Millisecond)
				if i%1000 == 0 {
					h.Counts()
				}
			}
		})
	}
	g.Wait()
	if c := h.Counts(); c.Total() != 80_000 || c.sum != 8*9_999*5_000 {
		t.Errorf("%d observations, sum %d", c.Total(), c.sum)
	}
}

// BenchmarkObserve is what a record costs: alone, and with a worker per core.
func BenchmarkObserve(b *testing.B) {
	var h Histogram
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			h.Observe(1300 * time.Millisecond)
		}
	})
	b.Run("many", func(b *testing.B) {
		b.SetParallelism(256 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				h.Observe(1300 * time.Millisecond)
			}
		})
	})
}

// TestHourGoesOnBehindARestart: points of the process before are kept for an hour, and nothing is
// drawn of the time between.
func TestHourGoesOnBehindARestart(t *testing.T) {
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	h := NewHistory(new(Histogram), now)
	h.Restore([]Point{
		{At: now.Add(-2 * time.Hour), Rate: 1}, {At: now.Add(-time.Minute), Rate: 2}, {At: now.Add(time.Minute), Rate: 3},
	}, now)
	h.Sample(now.Add(time.Minute), 0, 0)
	got := h.Hour()
	if len(got) != 3 || got[0].Rate != 2 || !got[1].At.Equal(now) || !math.IsNaN(got[1].Rate) || math.IsNaN(got[2].Rate) {
		t.Errorf("%+v", got)
	}
	empty := NewHistory(new(Histogram), now)
	if empty.Restore(nil, now); len(empty.Hour()) > 0 {
		t.Errorf("%+v of a first start", empty.Hour())
	}
}

// TestTablesThatBeganLaterHavePointsOfTheSameMoments: a chart of all tables is the sum of their
// points.
func TestTablesThatBeganLaterHavePointsOfTheSameMoments(t *testing.T) {
	now := time.Date(2026, 11, 25, 8, 0, 7, 0, time.UTC)
	var tables []*History
	var moments [3]string
	for i := range 30 {
		at := now.Add(time.Duration(i) * Every)
		if len(tables) < len(moments) {
			tables = append(tables, NewHistory(new(Histogram), at))
		}
		for _, h := range tables {
			h.Sample(at, 0, 0)
		}
	}
	for i, h := range tables {
		for _, p := range h.Hour() {
			moments[i] += p.At.Format(" 15:04:05")
		}
	}
	const want = " 08:00:37 08:01:07 08:01:37 08:02:07 08:02:37 08:03:07 08:03:37 08:04:07 08:04:37"
	if moments != [3]string{want, want, want} {
		t.Errorf("points at %q", moments)
	}
}
