package pipeline_test

import (
	"slices"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// table is the status of one table as its loop saw it last.
func (r *run) table(name string) pipeline.TableStatus {
	for _, s := range r.p.Status().Tables {
		if s.Source == name {
			return s
		}
	}
	r.t.Fatalf("no table %s", name)
	return pipeline.TableStatus{}
}

// ready waits until the pipeline is ready, and every table with it.
func (r *run) ready() {
	r.t.Helper()
	r.until("it is ready", func() bool { ready, _ := r.p.Ready(); return ready })
}

// metricWith is the sum of a counter over the series that have a label.
func (r *run) metricWith(name, label, value string) (sum float64) {
	r.t.Helper()
	all, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == label && l.GetValue() == value {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// letter returns the nth dead letter of a table, by version.
func (r *run) letter(name string, nth int) *deadletter.Letter {
	r.t.Helper()
	ctx := r.t.Context()
	l, err := r.queue.Log(ctx, name)
	if err != nil {
		r.t.Fatal(err)
	}
	store, err := l.DeadLetters(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []*deadletter.Letter
	for x, err := range store.All(ctx) {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *deadletter.Letter) int { return int(a.Version - b.Version) })
	if nth >= len(all) {
		r.t.Fatalf("%d dead letters, looked for number %d", len(all), nth)
	}
	return all[nth]
}

// metric is the sum of a counter, a gauge or the count of a histogram over its labels.
func (r *run) metric(name string) (sum float64) {
	r.t.Helper()
	all, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}
