package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Observer folds the logs of some tables. It is not safe for concurrent use.
type Observer struct {
	cfg     *config.Config
	tables  []config.Table
	clients *clients.Clients
	daemon  *pipeline.Status // served by the daemon of this configuration; nil: none answers
}

// NewObserver returns an observer of the tables, which are some of the configuration's.
func NewObserver(cfg *config.Config, tables []config.Table, clients *clients.Clients) *Observer {
	return &Observer{cfg: cfg, tables: tables, clients: clients}
}

// Look folds the log of every table once. It returns the status, and the state of each log for
// Wait.
func (o *Observer) Look(ctx context.Context) (pipeline.Status, []TableLog, error) {
	q, err := o.clients.Queue(ctx)
	if err != nil {
		return pipeline.Status{}, nil, err
	}
	return o.look(ctx, q)
}

// look is Look with an open queue.
func (o *Observer) look(ctx context.Context, q *queue.Queue) (pipeline.Status, []TableLog, error) {
	var statuses []pipeline.TableStatus
	var all []TableLog
	for _, t := range o.tables {
		status, log, err := o.table(ctx, q, t)
		if err != nil {
			return pipeline.Status{}, nil, err
		}
		if reason, ok := clients.GoneReason(&t); ok && !status.Has(reason.Code) {
			status.Put(reason)
		}
		statuses, all = append(statuses, status), append(all, log)
	}
	return o.whole(statuses), all, nil
}

// lookTwice looks at the logs, and a second time if a table is late: between the two, the table may
// be seen to move. Rule 10: a table that is behind and moves is catching up.
func (o *Observer) lookTwice(ctx context.Context) (pipeline.Status, error) {
	status, before, err := o.Look(ctx)
	if err != nil || !slices.ContainsFunc(status.Tables, pipeline.TableStatus.Late) {
		return status, err
	}
	if failure.Pause(ctx, 2*time.Duration(o.cfg.Protocol.MarkInterval)) != nil {
		return status, nil
	}
	again, after, err := o.Look(ctx)
	if err != nil {
		return status, err
	}
	for i := range again.Tables {
		again.Tables[i].Moved(before[i].State, after[i].State)
	}
	return o.whole(again.Tables), nil
}

// whole returns the status of the tables together, with what only the daemon can report.
func (o *Observer) whole(tables []pipeline.TableStatus) pipeline.Status {
	s := pipeline.Summarize(o.cfg.Pipeline, tables)
	s.Explain(unfit(o.cfg))
	if o.daemon != nil {
		s.Fail(o.daemon.Failing, o.daemon.Services)
		s.Verdict.Adopt(&o.daemon.Verdict)
		s.Rehearsals = o.daemon.Rehearsals
	}
	return s
}

// table returns the status of one table from its log; if there is no log, the daemon's status of
// the table. A log with an entry that cannot be read makes the table halted and is not an error, so
// that the other tables are still shown.
func (o *Observer) table(ctx context.Context, q *queue.Queue, t config.Table) (pipeline.TableStatus, TableLog, error) {
	running := o.runningTable(t.Source)
	x := status.Seen{
		Instance: o.cfg.Bigtable.Project + "/" + o.cfg.Bigtable.Instance,
		Source:   t.Source, Target: t.Target, State: checkpoint.NewState(), Now: change.Millis(o.clients.Now().UnixMilli()),
		ClaimTTL: time.Duration(o.cfg.Protocol.ClaimTTL), Retry: time.Duration(o.cfg.Protocol.RetryHalted),
		Late: clients.LateAfter(o.cfg, &t), Carried: running != nil, Live: running,
		Closed: o.clients.StoreWasClosed(),
	}
	log, err := q.Log(ctx, t.Source)
	switch {
	case errors.Is(err, queue.ErrNoLog) && running != nil:
		return *running, TableLog{State: x.State}, nil
	case errors.Is(err, queue.ErrNoLog):
		st := status.Of(x)
		refused, err := o.lostLog(ctx, &t)
		if refused != nil {
			st.State, st.Halt, st.Code = "halted", refused.What+": "+refused.Hint, cmp.Or(refused.Code, outcome.CodeRefused)
			st.Explain(status.HaltedBy(st.Halt))
		} else {
			st.Explain(status.Reason{Code: status.WhyNoLog, Text: noLog(&t, err)})
		}
		return st, TableLog{State: x.State}, nil
	case errors.Is(err, queue.ErrVolume) && running != nil:
		return *running, TableLog{State: x.State}, nil
	case err != nil:
		err = fmt.Errorf("open log of %s: %w", t.Source, err)
		return pipeline.TableStatus{}, TableLog{}, failure.With(failure.Unready, "see `replicator check`", err)
	}
	err = measure(ctx, log, &x)
	if damage := (*queue.DamageError)(nil); errors.As(err, &damage) || errors.Is(err, queue.ErrVolume) {
		x.State = checkpoint.NewState()
		st := status.Of(x)
		st.State, st.Halt, st.Code = "halted", err.Error(), "log_unread"
		if damage != nil {
			st.Halt, st.Code = damage.Error(), "log_damaged"
		}
		st.Explain(status.HaltedBy(st.Halt))
		return st, TableLog{State: x.State}, nil
	}
	if err != nil {
		return pipeline.TableStatus{}, TableLog{}, fmt.Errorf("look at log of %s: %w", t.Source, err)
	}
	st := status.Of(x)
	if b := st.BehindFence; b != nil {
		b.KeyHashes, _ = queue.KeyHashesBehind(ctx, log, x.State.Fence.Seq, mostHashes) // the number is what counts
	}
	if running != nil && running.Has(status.WhyVanished) {
		st.Vanish()
	}
	if running != nil && running.State == "halted" && st.Halt == "" {
		st.State, st.Halt, st.Code = running.State, running.Halt, running.Code
		st.Put(status.HaltedBy(running.Halt))
	}
	return st, TableLog{Log: log, State: x.State, Letters: x.Letters}, nil
}

// lostLog returns why no replicator would begin the log of a table that has none: the pipeline's
// row of the table shows that changes were read into it. nil where there is no such row. An error
// means that the row cannot be read.
func (o *Observer) lostLog(ctx context.Context, t *config.Table) (*outcome.RefusedError, error) {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	rows, err := o.clients.Rows(ctx, t)
	if err != nil {
		return nil, err
	}
	row, err := rows.LoadState(ctx, o.cfg.Pipeline, t.Source)
	switch {
	case errors.Is(err, bigtable.ErrNoState), bigtable.Classify(err) == failure.Missing: // before `schema --apply`
		return nil, nil
	case err != nil:
		return nil, err
	}
	return staterow.CheckLost(row), nil
}

// mostHashes is how many items behind a fence are named: enough to look for their writer.
const mostHashes = 10

// noLog returns why a table is not ready that has no log. err is why the pipeline's row of the
// table cannot be read: only then may the table have had a log.
func noLog(t *config.Table, err error) string {
	why := "no log yet: no replicator has created it; if one runs, its /readyz says why"
	if t.Found {
		why = "no log yet: " + t.Path + " chooses the table, and a replicator that runs begins it within a minute; " +
			"if it does not, its /readyz says why"
	}
	if err != nil {
		why += fmt.Sprintf("; if there was a log, it is lost, and `replicator recover --all` begins a new one: that could "+
			"not be looked up in tailrace_state (%v)", err)
	}
	if !t.Found {
		why += "; if the table was retired, take it out of the configuration"
	}
	return why
}

// unfit returns the tables that selections choose and that cannot be replicated, as reasons.
func unfit(cfg *config.Config) (reasons []string) {
	for _, u := range cfg.Unfit {
		reasons = append(reasons, u.String())
	}
	return reasons
}

// measure reads the parts of a status from the log.
func measure(ctx context.Context, log *queue.Log, x *status.Seen) (err error) {
	if x.State, err = log.Fold(ctx); err != nil {
		return err
	}
	if x.Pressure, err = log.Pressure(ctx); err != nil {
		return fmt.Errorf("measure it: %w", err)
	}
	letters, err := log.ExistingDeadLetters(ctx)
	if err != nil {
		return fmt.Errorf("open dead letters: %w", err)
	}
	if letters == nil {
		return nil
	}
	if x.Letters, err = letters.Count(ctx); err != nil {
		return fmt.Errorf("count dead letters: %w", err)
	}
	x.LettersSince, err = oldest(ctx, letters)
	return err
}

// fewLetters is how many letters are read to find the oldest: retried ones stand behind the others,
// so the first is the oldest but for these. With ten times as many, status would take a tenth of a
// second longer.
const fewLetters = 100

// oldest returns when the oldest letter was refused; the zero time without letters.
func oldest(ctx context.Context, letters *deadletter.Store) (since time.Time, err error) {
	n := 0
	for l, err := range letters.All(ctx) {
		if err != nil {
			return since, fmt.Errorf("read dead letters: %w", err)
		}
		if at := l.FirstSeen; !at.IsZero() && (since.IsZero() || at.Before(since)) { // zero: it cannot be read
			since = l.FirstSeen
		}
		if n++; n == fewLetters {
			break
		}
	}
	return since, nil
}

// runningTable returns the daemon's status of a table, or nil if no daemon answers or it only
// stands by for the table.
func (o *Observer) runningTable(table string) *pipeline.TableStatus {
	if o.daemon == nil {
		return nil
	}
	for i := range o.daemon.Tables {
		if t := &o.daemon.Tables[i]; t.Source == table && t.State != status.StandBy {
			return t
		}
	}
	return nil
}
