package admin

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// chart is a line of the last hour.
type chart struct {
	Label string
	Paths []string // several where something was not known in between
	High  string   // the value at the upper edge; "": there is nothing to draw yet
	Limit string   // the path of a line above which a table is not ready; "": it is far above all values
}

const (
	chartWidth  = 240.0
	chartHeight = 48.0
	hourSeconds = 3600.0
)

func charts(points []latency.Point) []chart {
	if len(points) == 0 {
		return []chart{{Label: "The first point is taken half a minute after the start."}}
	}
	return []chart{
		newChart("p99 latency", points, 0, periodText, func(p *latency.Point) float64 { return p.P99 }),
		newChart("changes per second", points, 0, perSecond, func(p *latency.Point) float64 { return p.Rate }),
		newChart("waiting changes", points, 0, wholeText, func(p *latency.Point) float64 { return p.Pending }),
		newChart("age of the proof", points, status.DefaultLate.Seconds(), periodText,
			func(p *latency.Point) float64 { return p.Lag }),
	}
}

// newChart draws the values of points; the newest is at the right edge, the highest at the upper
// one. Once values come near a limit, it is drawn too; 0: there is none.
func newChart(
	name string, points []latency.Point, limit float64, text func(float64) string, of func(*latency.Point) float64,
) chart {
	high, last := 0.0, points[len(points)-1]
	for i := range points {
		if y := of(&points[i]); !math.IsNaN(y) {
			high = max(high, y)
		}
	}
	c := chart{Label: fmt.Sprintf("%s: %s now, at most %s", name, text(of(&last)), text(high))}
	if limit > 0 {
		c.Label += ", late above " + text(limit)
	}
	if limit > 0 && high > limit/4 {
		high = max(high, limit)
		c.Limit = fmt.Sprintf("M0 %.1fh%.0f", level(limit, high), chartWidth)
	}
	c.High = text(high)
	var path strings.Builder
	flush := func() {
		if path.Len() > 0 {
			c.Paths = append(c.Paths, path.String())
			path.Reset()
		}
	}
	for i := range points {
		y := of(&points[i])
		if math.IsNaN(y) {
			flush()
			continue
		}
		x := chartWidth * (1 - last.At.Sub(points[i].At).Seconds()/hourSeconds)
		command := "L"
		if path.Len() == 0 {
			command = fmt.Sprintf("M%.1f %.1fh1", x-1, level(y, high)) // a single point is seen too
			path.WriteString(command)
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, x, level(y, high))
	}
	flush()
	return c
}

// level returns where a value stands in a chart.
func level(y, high float64) float64 { return chartHeight - 2 - (chartHeight-4)*y/max(high, 1e-9) }

// together returns the points of all tables as points of one. Rates and waiting changes are added;
// of latencies and lags the highest counts. The tables are sampled at the same moments.
func together(hours map[string][]latency.Point) (all []latency.Point) {
	index := map[int64]int{}
	for _, points := range hours {
		for i := range points {
			p := &points[i]
			at, known := index[p.At.Unix()]
			if !known {
				index[p.At.Unix()] = len(all)
				all = append(all, *p)
				continue
			}
			sum := &all[at]
			sum.P50, sum.P99, sum.Lag = worse(sum.P50, p.P50), worse(sum.P99, p.P99), worse(sum.Lag, p.Lag)
			sum.Rate, sum.Pending = added(sum.Rate, p.Rate), added(sum.Pending, p.Pending)
		}
	}
	slices.SortFunc(all, func(a, b latency.Point) int { return a.At.Compare(b.At) })
	return all
}

// worse returns the higher of two values. NaN is an unknown value.
func worse(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// added returns the sum of two values. NaN is an unknown value.
func added(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return a + b
}

const (
	sparkWidth  = 96.0
	sparkHeight = 20.0
	sparkStep   = 4 // points per step: the highest one is drawn
)

// sparkline returns the path of the changes per second of the last hour; "" before there are any.
func sparkline(points []latency.Point) string {
	if len(points) < sparkStep {
		return ""
	}
	high, last := 0.0, points[len(points)-1].At
	for i := range points {
		high = worse(high, points[i].Rate)
	}
	var path strings.Builder
	command := "M"
	for i := 0; i < len(points); i += sparkStep {
		y := 0.0
		for _, p := range points[i:min(i+sparkStep, len(points))] {
			y = worse(y, p.Rate)
		}
		x := sparkWidth * (1 - last.Sub(points[i].At).Seconds()/hourSeconds)
		fmt.Fprintf(&path, "%s%.0f %.1f", command, x, sparkHeight-1-(sparkHeight-2)*y/max(high, 1e-9))
		command = "L"
	}
	return path.String()
}
