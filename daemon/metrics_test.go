package daemon

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tailrace-cdc/replicator/config"
)

// TestEachMetricOfATableHasItsTarget: also where the package that counts knows the source alone.
// The labels that a series shares between two calls stay as they are.
func TestEachMetricOfATableHasItsTarget(t *testing.T) {
	reg := prometheus.NewRegistry()
	add := func(name string, labels map[string]string) {
		desc := prometheus.NewDesc(name, "x", nil, labels)
		reg.MustRegister(constant{prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1)})
	}
	add("tailrace_a", map[string]string{"zone": "z", "table": "Orders", "kind": "k"})
	add("tailrace_b", map[string]string{"table": "Sessions"})
	add("tailrace_c", map[string]string{"target": "orders", "outcome": "ok"})
	add("other", map[string]string{"table": "Orders"})
	g := WithTargets(reg, func() []config.Table {
		return []config.Table{{Source: "Orders", Target: "orders"}, {Source: "Sessions"}}
	})
	for range 2 {
		err := testutil.GatherAndCompare(g, strings.NewReader(`# HELP other x
# TYPE other gauge
other{table="Orders"} 1
# HELP tailrace_a x
# TYPE tailrace_a gauge
tailrace_a{kind="k",table="Orders",target="orders",zone="z"} 1
# HELP tailrace_b x
# TYPE tailrace_b gauge
tailrace_b{table="Sessions"} 1
# HELP tailrace_c x
# TYPE tailrace_c gauge
tailrace_c{outcome="ok",target="orders"} 1
`))
		if err != nil {
			t.Error(err)
		}
	}
}

// constant is a metric that is always the same.
type constant struct{ prometheus.Metric }

func (c constant) Describe(ch chan<- *prometheus.Desc) { ch <- c.Desc() }
func (c constant) Collect(ch chan<- prometheus.Metric) { ch <- c.Metric }
