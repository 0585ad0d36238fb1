package admin

import (
	"fmt"
	"math"
	"strings"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
)

// chart is a line of the last hour.
type chart struct {
	Label string
	Paths []string // several where something was not known in between
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
		newChart("p99 latency", points, periodText, func(p *latency.Point) float64 { return p.P99 }),
		newChart("changes per second", points, perSecond, func(p *latency.Point) float64 { return p.Rate }),
		newChart("waiting changes", points, wholeText, func(p *latency.Point) float64 { return p.Pending }),
		newChart("age of the proof", points, periodText, func(p *latency.Point) float64 { return p.Lag }),
	}
}

// newChart draws the values of points; the newest is at the right edge, the highest at the upper
// one.
func newChart(name string, points []latency.Point, text func(float64) string, of func(*latency.Point) float64) chart {
	high, last := 0.0, points[len(points)-1]
	for i := range points {
		if y := of(&points[i]); !math.IsNaN(y) {
			high = max(high, y)
		}
	}
	c := chart{Label: fmt.Sprintf("%s: %s now, at most %s", name, text(of(&last)), text(high))}
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
