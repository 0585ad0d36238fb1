package archive

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of the archive. Label place is "file" or "subject".
type metrics struct {
	events *prometheus.CounterVec
}

// newMetrics makes the metrics and registers them, unless reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{events: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "tailrace_archive_events_total", Help: "Archival events made durable, by place; replays count again.",
	}, []string{"place"})}
}
