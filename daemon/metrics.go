package daemon

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/tailrace-cdc/replicator/config"
)

// Registry returns a registry that has the process's own metrics.
func Registry(build Build) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tailrace_build_info", Help: "Always 1; its labels say which build this is.",
	}, []string{"version", "go_version", "revision"})
	info.WithLabelValues(build.Version, runtime.Version(), build.Revision).Set(1)
	reg.MustRegister(info)
	return reg
}

// Build identifies the build of a program.
type Build struct {
	Version  string
	Revision string // of the repository; "unknown" where Go has not recorded it
}

// BuildOf returns the build of this program, of a version.
func BuildOf(version string) Build {
	b := Build{Version: version, Revision: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}

// WithTargets adds the label target to each metric of a table. In every metric of ours, table is
// the name of a table in DynamoDB and target the name of the table in Bigtable. Packages with only
// the first name, such as the readers of the stream and the log, leave the second to this function.
// A table without a target has none. tables returns the tables at the time of a scrape.
func WithTargets(metrics prometheus.Gatherer, tables func() []config.Table) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		targets := map[string]string{}
		for _, t := range tables() {
			targets[t.Source] = t.Target
		}
		all, err := metrics.Gather()
		for _, family := range all {
			if !strings.HasPrefix(family.GetName(), "tailrace_") {
				continue
			}
			for _, m := range family.GetMetric() {
				m.Label = withTarget(m.GetLabel(), targets)
			}
		}
		return all, err
	})
}

// withTarget returns the labels of a series with its target, ordered by name. The given ones stay
// as they are: series share them from one call to the next.
func withTarget(labels []*dto.LabelPair, targets map[string]string) []*dto.LabelPair {
	byName := func(l *dto.LabelPair, name string) int { return cmp.Compare(l.GetName(), name) }
	table, hasTable := slices.BinarySearchFunc(labels, "table", byName)
	at, hasTarget := slices.BinarySearchFunc(labels, "target", byName)
	if !hasTable || hasTarget || targets[labels[table].GetValue()] == "" {
		return labels
	}
	name, value := "target", targets[labels[table].GetValue()]
	return slices.Insert(slices.Clone(labels), at, &dto.LabelPair{Name: &name, Value: &value})
}
