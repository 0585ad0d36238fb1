package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// Live returns why the process should be restarted, for a liveness probe: a loop stands still, or
// the embedded queue cannot store. Outside servers are not asked: no restart brings them back.
func (p *Pipeline) Live() error {
	if p.queue.Embedded() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := p.queue.Health(ctx); err != nil {
			return fmt.Errorf("queue: %w", err)
		}
	}
	for _, t := range p.all() {
		s := t.view.latest()
		if s.seen == nil || s.phase != phaseWorking {
			continue
		}
		if still := time.Since(s.seen.LookedAt()); still > 6*p.o.Periods.ClaimTTL {
			return fmt.Errorf("table %s: its loop has not moved for %s", t.Source, still.Round(time.Second))
		}
	}
	return nil
}

// Started returns which tables have not loaded their state yet, owning or standing by: what a
// rollout waits for.
func (p *Pipeline) Started() error {
	var errs []error
	for _, t := range p.all() {
		if !t.view.latest().loaded {
			errs = append(errs, fmt.Errorf("table %s: state not loaded yet", t.Source))
		}
	}
	return errors.Join(errs...)
}

// Status returns how the tables are now, from the last observation of their loops and its age, and
// which services fail.
func (p *Pipeline) Status() Status {
	now := time.Now()
	var tables []TableStatus
	for _, t := range p.all() {
		tables = append(tables, t.view.status(now))
	}
	s := Summarize(p.o.Name, tables)
	if others, ok := p.others.Load().([]string); ok {
		s.Explain(others)
	}
	// Rule 10: a table without proof of progress now is not ready. The services to blame stand
	// first.
	sentences, services := p.failures(now)
	s.Fail(sentences, services)
	s.Rehearsals = p.rehearsals.All()
	p.tracker.Note(&s.Verdict, now)
	return s
}

// failures returns which services fail for longer than a retry takes, and how much waits for them.
// A sentence about the time stands behind the sentences about services.
func (p *Pipeline) failures(now time.Time) (failing []string, services []status.Service) {
	for _, f := range p.o.Services.Failures(now) {
		if f.Lasts(now) {
			failing = append(failing, f.Sentence(now)+p.backlog(f.Service))
			s := status.Service{Name: f.Service, Since: f.Since.UTC(), Error: f.Err.Error()}
			s.Throttled = source.Classify(f.Err) == failure.Throttled
			s.Refuses, s.Hint = refusal(&f)
			services = append(services, s)
		}
	}
	if p.source == nil {
		return failing, services
	}
	if apart, uncertain := p.source.Apart(); uncertain {
		failing = append(failing, fmt.Sprintf("the time is uncertain: the first Date of DynamoDB was more than 30 s from "+
			"this machine's clock, the newest one is %s from it; copies and resyncs wait until Dates have advanced "+
			"steadily: set the clock if it is wrong", apart.Round(time.Second)))
	}
	return failing, services
}

// refusal reports whether a service answers and does not accept the credentials, or whether there
// are none, and what ends that.
func refusal(f *status.Failure) (refuses bool, hint string) {
	switch f.Service {
	case status.DynamoDB:
		return source.Refused(f.Err), source.Hint(f.Err)
	case status.Bigtable:
		return bigtable.Classify(f.Err) == failure.Denied, ""
	case status.NATS:
		return queue.Classify(f.Err) == failure.Denied, ""
	}
	return false, ""
}

// backlog returns how much waits for a failing service, for a reason.
func (p *Pipeline) backlog(service string) string {
	var n uint64
	for _, t := range p.all() {
		if v := t.view.latest().seen; v != nil && v.Own() {
			n += v.Waiting()
		}
	}
	if service != status.Bigtable || n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of the logs wait to be applied", status.Entries(n))
}

// Unsaved returns, after Run, the tables with newest marks that are not in their logs: the changes
// behind the stored marks are applied again by the next owner, as the same cells.
func (p *Pipeline) Unsaved() (tables []string) {
	for _, t := range p.all() {
		if t.view.latest().unsaved {
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

// AppliedThrough returns the time up to which every table is applied; false while it is unknown for
// one of them.
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
