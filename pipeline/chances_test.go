package pipeline_test

import (
	"testing"

	"github.com/tailrace-cdc/replicator/test/sometimes"
)

// Branches that a test sees.
const (
	guardRefuses = "a write is refused by its guard"
	goesOn       = "a copy goes on from what is marked as copied"
)

// chances counts how often the histories of a test reach what they seldom reach.
type chances struct{ *sometimes.Logged }

// newChances returns chances that count what pipelines log, and what guards refuse.
func newChances(t *testing.T, histories, enough int, seen []string, logged ...string) chances {
	return chances{sometimes.NewLogged(t, histories, enough, append(seen, guardRefuses), logged...)}
}

// watch counts what the pipelines of a world log, once its test has ended.
func (c chances) watch(w *world) {
	w.t.Cleanup(func() { c.Read(func(text string) int { return w.logged.FilterMessageSnippet(text).Len() }) })
}

// end counts what the guards have refused since the start of a pipeline, before it is stopped.
func (c chances) end(r *run) {
	all, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "tailrace_bigtable_calls_total" && l.GetName() == "outcome" && l.GetValue() == "skipped" {
					c.Add(guardRefuses, uint64(m.GetCounter().GetValue()))
				}
			}
		}
	}
}
