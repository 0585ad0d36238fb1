package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Status of the whole pipeline.
type Status struct {
	Schema   int           `json:"schema"`
	Pipeline string        `json:"pipeline"`
	Ready    bool          `json:"ready"`
	Reasons  []string      `json:"reasons"`
	Tables   []TableStatus `json:"tables"`
}

// Summarize joins the tables' statuses.
func Summarize(pipeline string, tables []TableStatus) Status {
	s := Status{Schema: 1, Pipeline: pipeline, Reasons: []string{}, Tables: tables}
	for _, t := range tables {
		for _, r := range t.Reasons {
			s.Reasons = append(s.Reasons, t.Source+": "+r)
		}
	}
	s.Ready = len(s.Reasons) == 0 && len(tables) > 0
	return s
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Live says whether the loops run and the queue can store: what a liveness probe asks.
func (p *Pipeline) Live() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := p.queue.Health(ctx); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	for _, t := range p.tables {
		v := t.view.Load()
		if v != nil && t.owning.Load() && time.Since(v.At) > 6*p.o.Periods.ClaimTTL {
			return fmt.Errorf("table %s: its loop has not moved for %s", t.Source, time.Since(v.At).Round(time.Second))
		}
	}
	return nil
}

// Started says whether every table's state is loaded, owning or standing by: what a rollout waits for.
func (p *Pipeline) Started() error {
	var errs []error
	for _, t := range p.tables {
		if !t.started.Load() {
			errs = append(errs, fmt.Errorf("table %s: state not loaded yet", t.Source))
		}
	}
	return errors.Join(errs...)
}

// Status says how the tables are, as their loops saw it last.
func (p *Pipeline) Status() Status {
	var tables []TableStatus
	for _, t := range p.tables {
		tables = append(tables, t.status())
	}
	return Summarize(p.o.Name, tables)
}

// Ready is Rule 10, for people and alerts.
func (p *Pipeline) Ready() (bool, []string) {
	s := p.Status()
	return s.Ready, s.Reasons
}

// AppliedThrough returns the time up to which every table is applied; false while one does not know.
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

func (t *table) status() TableStatus {
	halt := t.halted.Load()
	st := TableStatus{Source: t.Source, Target: t.Target, State: "waiting", SourceLag: -1, AppliedLag: -1, Retention: -1,
		Proof: "assumed", Reasons: []string{"not started yet"}}
	if v := t.view.Load(); v != nil {
		st = v.Status
	}
	if halt != nil {
		st.State, st.Halt, st.Code = "halted", halt.Reason, halt.Code
		st.Reasons = append([]string{"halted: " + halt.Reason}, st.Reasons...)
	}
	return st
}

// observe publishes what the state has become, for health and metrics. The writer's loop calls it.
func (t *table) observe(s *checkpoint.State) {
	st := StatusOf(Seen{
		Source: t.Source, Target: t.Target, State: s, Pressure: t.pressure, Letters: t.letters.open(),
		Now: t.now(), ClaimTTL: t.p.o.Periods.ClaimTTL,
	})
	t.view.Store(&view{Status: st, At: time.Now()})
	t.m.show(&st)
	t.m.showRows(t.heat, time.Now())
}
