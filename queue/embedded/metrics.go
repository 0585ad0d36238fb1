package embedded

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// metrics compare the volume of an embedded store with what the logs may take.
type metrics struct{ available, untaken, low prometheus.Gauge }

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		opts := prometheus.GaugeOpts{Namespace: "tailrace", Subsystem: "queue", Name: name, Help: help}
		return conn.Register(reg, prometheus.NewGauge(opts))
	}
	return &metrics{
		available: gauge("disk_available_bytes", "Bytes left for the logs on the volume of the embedded queue."),
		untaken:   gauge("disk_untaken_bytes", "Bytes that the logs may still take until each has reached queue.max_bytes."),
		low:       gauge("disk_low", "1 while reading pauses because the volume has little room left."),
	}
}

func (m *metrics) show(d Disk) {
	m.available.Set(float64(d.Left))
	m.untaken.Set(float64(d.Untaken))
	m.low.Set(0)
	if d.Low {
		m.low.Set(1)
	}
}
