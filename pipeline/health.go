package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
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

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Live says whether the loops run and the queue can store: what a liveness probe asks. Servers outside are not
// asked: no restart brings them back.
func (p *Pipeline) Live() error {
	if p.queue.Embedded() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := p.queue.Health(ctx); err != nil {
			return fmt.Errorf("queue: %w", err)
		}
	}
	for _, t := range p.tables {
		v := t.view.Load()
		if v != nil && t.owning.Load() && time.Since(v.when) > 6*p.o.Periods.ClaimTTL {
			return fmt.Errorf("table %s: its loop has not moved for %s", t.Source, time.Since(v.when).Round(time.Second))
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

// Status says how the tables are now: what their loops saw last, as old as that has become, and which services fail.
func (p *Pipeline) Status() Status {
	now := time.Now()
	var tables []TableStatus
	for _, t := range p.tables {
		tables = append(tables, t.status(now))
	}
	s := Summarize(p.o.Name, tables)
	// Rule 10: what is shown by nothing now is not ready, and whose fault that is stands first.
	s.Fail(p.failures(now))
	return s
}

// failures says which services fail for longer than a retry mends, and how much waits for them.
func (p *Pipeline) failures(now time.Time) (failing []string) {
	for _, f := range p.o.Services.Failures(now) {
		if now.Sub(f.Since) >= failureGrace {
			failing = append(failing, f.sentence(now)+p.waits(f.Service))
		}
	}
	return failing
}

// Fail adds that services fail: then nothing is ready.
func (s *Status) Fail(failing []string) {
	if len(failing) == 0 {
		return // the lists stay empty ones: in JSON [], not null
	}
	s.Failing = append(s.Failing, failing...)
	s.Reasons = append(slices.Clone(failing), s.Reasons...)
	s.Ready = false
}

// waits says how much waits for a service that fails.
func (p *Pipeline) waits(service string) string {
	var n uint64
	for _, t := range p.tables {
		if v := t.view.Load(); v != nil && v.own {
			n += v.waiting
		}
	}
	if service != Bigtable || n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of the logs wait to be applied", entries(n))
}

// Unsaved returns, after Run, the tables whose newest marks are not in their logs: what they do not cover is applied
// again by the next owner, as the same cells.
func (p *Pipeline) Unsaved() (tables []string) {
	for _, t := range p.tables {
		if t.unsaved.Load() {
			tables = append(tables, t.Source)
		}
	}
	return tables
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

// status says how the table is now, as far as this process knows.
func (t *table) status(now time.Time) TableStatus {
	o := observed{status: TableStatus{Source: t.Source, Target: t.Target, State: "waiting", Proof: "assumed"}, when: t.born}
	v := t.view.Load()
	if v != nil {
		o = *v
	}
	halt, rival := t.halted.Load(), t.rival.Load()
	if halt != nil {
		o.status.State, o.status.Halt, o.status.Code = "halted", halt.Reason, halt.Code
		o.status.halt(halt.Sink, halt.Reason)
		o.sign, o.retried, o.released = max(o.sign, halt.At), true, true
	}
	if rival != nil && halt == nil {
		return t.standBy(rival, now)
	}
	st := o.at(time.UnixMilli(t.now()), now)
	if v == nil { // nothing is known since the start of the process, so nothing is younger than that
		st.SourceLag, st.AppliedLag = now.Sub(t.born).Seconds(), now.Sub(t.born).Seconds()
		if halt == nil {
			st.Reasons = []string{"not started yet, for " + ago(now.Sub(t.born))}
		} else {
			st.Reasons = []string{"halted: " + halt.Reason}
		}
	}
	return st
}

// standBy is the status of a table that another process carries. That one reports it; here it is well as long as the
// log moves.
func (t *table) standBy(r *rival, now time.Time) TableStatus {
	st := TableStatus{Source: t.Source, Target: t.Target, State: StandBy, SourceLag: -1, AppliedLag: -1, Retention: -1,
		Proof: "assumed", Owner: r.owner, Epoch: r.epoch, Queue: QueueUse{HoursLeft: -1}}
	if still := now.Sub(r.moved); still > 3*t.p.o.Periods.ClaimTTL {
		st.Reasons = []string{fmt.Sprintf("standing by, but the owner %s has shown no sign of life for %s", r.owner, ago(still))}
	}
	return st
}

// rival is another process that owns the table's log.
type rival struct {
	owner string
	epoch uint64
	last  uint64    // newest entry of the log
	moved time.Time // when the log was last seen to grow
}

// awaitTurn claims the log, and meanwhile watches whether somebody else carries the table.
func (t *table) awaitTurn(ctx context.Context, l *queue.Log) (*queue.Writer, error) {
	watching, cancel := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { t.watchRival(watching, l); return nil })
	defer func() {
		cancel()
		_ = g.Wait() // it returns nothing but nil
		t.rival.Store(nil)
	}()
	return l.Claim(ctx, t.claimOptions())
}

// watchRival looks at every beat whether the log grows.
func (t *table) watchRival(ctx context.Context, l *queue.Log) {
	var last uint64
	for sleep(ctx, t.p.o.Periods.Beat) {
		info, err := l.Info(ctx)
		if err != nil {
			continue // the failure of the service is reported where the call is made
		}
		seen := t.rival.Load()
		switch {
		case last == 0 || info.Last == last:
		case seen == nil:
			r := &rival{last: info.Last, moved: time.Now()}
			if s, err := l.Fold(ctx); err == nil {
				r.owner, r.epoch = s.Owner, s.Epoch
			}
			t.view.Store(nil) // what was known was known as the owner
			t.rival.Store(r)
		default:
			t.rival.Store(&rival{owner: seen.owner, epoch: seen.epoch, last: info.Last, moved: time.Now()})
		}
		last = info.Last
	}
}

// observe publishes what the state has become, for health and metrics. The writer's loop calls it.
func (t *table) observe(s *checkpoint.State) {
	o := observe(Seen{
		Source: t.Source, Target: t.Target, State: s, Pressure: t.pressure, Letters: t.letters.Count(),
		Now: t.now(), ClaimTTL: t.p.o.Periods.ClaimTTL, Retry: t.p.o.Periods.Retry, Late: t.p.o.Periods.Late,
	}, t.view.Load())
	o.own = !s.Released
	t.view.Store(o)
}
