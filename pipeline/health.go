package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Status of the whole pipeline.
type Status struct {
	Schema   int           `json:"schema"`
	Pipeline string        `json:"pipeline"`
	Ready    bool          `json:"ready"`
	Failing  []string      `json:"failing"` // services that the daemon cannot use, since when, and why
	Reasons  []string      `json:"reasons"`
	Tables   []TableStatus `json:"tables"`
}

// Summarize joins the tables' statuses.
func Summarize(pipeline string, tables []TableStatus) Status {
	s := Status{Schema: 1, Pipeline: pipeline, Failing: []string{}, Reasons: []string{}, Tables: tables}
	for i := range tables {
		t := &tables[i]
		if t.Halts == nil {
			t.Halts = map[string]string{} // an object in JSON, whatever is in it
		}
		for _, r := range t.Reasons {
			s.Reasons = append(s.Reasons, t.Source+": "+r)
		}
	}
	s.Ready = len(s.Reasons) == 0 && len(tables) > 0
	return s
}

// Live returns why the process should be restarted, for a liveness probe: a loop stands still, or the embedded queue
// cannot store. Outside servers are not asked: no restart brings them back.
func (p *Pipeline) Live() error {
	if p.queue.Embedded() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := p.queue.Health(ctx); err != nil {
			return fmt.Errorf("queue: %w", err)
		}
	}
	for _, t := range p.tables {
		seen := t.view.seen.Load()
		if seen != nil && t.view.owning.Load() && time.Since(seen.LookedAt()) > 6*p.o.Periods.ClaimTTL {
			return fmt.Errorf("table %s: its loop has not moved for %s", t.Source,
				time.Since(seen.LookedAt()).Round(time.Second))
		}
	}
	return nil
}

// Started returns which tables have not loaded their state yet, owning or standing by: what a rollout waits for.
func (p *Pipeline) Started() error {
	var errs []error
	for _, t := range p.tables {
		if !t.view.started.Load() {
			errs = append(errs, fmt.Errorf("table %s: state not loaded yet", t.Source))
		}
	}
	return errors.Join(errs...)
}

// Status returns how the tables are now, by what their loops saw last and how old that is, and which services fail.
func (p *Pipeline) Status() Status {
	now := time.Now()
	var tables []TableStatus
	for _, t := range p.tables {
		tables = append(tables, t.view.status(now))
	}
	s := Summarize(p.o.Name, tables)
	// Rule 10: a table without proof of progress now is not ready. The services to blame stand first.
	s.Fail(p.failures(now))
	return s
}

// Fail adds failing services: then nothing is ready.
func (s *Status) Fail(failing []string) {
	if len(failing) == 0 {
		return // the lists stay empty: in JSON [], not null
	}
	s.Failing = append(s.Failing, failing...)
	s.Reasons = append(slices.Clone(failing), s.Reasons...)
	s.Ready = false
}

// Unsaved returns, after Run, the tables whose newest marks are not in their logs: the changes behind the stored marks
// are applied again by the next owner, as the same cells.
func (p *Pipeline) Unsaved() (tables []string) {
	for _, t := range p.tables {
		if t.view.unsaved.Load() {
			tables = append(tables, t.Source)
		}
	}
	return tables
}

// Ready reports Rule 10 for readiness probes and alerts: ready, or why not.
func (p *Pipeline) Ready() (bool, []string) {
	s := p.Status()
	return s.Ready, s.Reasons
}

// AppliedThrough returns the time up to which every table is applied; false while it is unknown for one of them.
func (p *Pipeline) AppliedThrough() (time.Time, bool) {
	var low time.Time
	for _, s := range p.Status().Tables {
		if s.AppliedThrough == nil {
			return time.Time{}, false
		}
		if low.IsZero() || s.AppliedThrough.Before(low) {
			low = *s.AppliedThrough
		}
	}
	return low, !low.IsZero()
}
