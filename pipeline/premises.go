package pipeline

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/protocol"
)

// checkPremises reads the settings that the table relies on once, publishes what is wrong, and
// returns a halt where nothing may be written. An outside system that does not answer leaves the
// last answer as it is.
//
// Rule 15: a premise that another system holds is looked at before the work of a life, and then
// while it lasts.
func (t *table) checkPremises(ctx context.Context) error {
	found, err := t.currentLog().Premises(ctx)
	if err != nil {
		t.log.Warn("settings of the queue's streams not read, trying again", zap.Error(err))
		return nil
	}
	t.view.publish(func(s *snapshot) { s.premises = found })
	if p := found.Unsafe(); p != nil {
		return &outcome.HaltError{Code: outcome.CodePremise, Reason: p.Text()}
	}
	return nil
}

// settingsOptions say which settings the tables of the process rely on.
func (p *Pipeline) settingsOptions() settings.Options {
	o := settings.Options{Bigtable: p.bigtable, Logger: p.log}
	if a := p.o.Archive; a != nil {
		o.Objects, o.URL = a.Objects, a.URL
	}
	return o
}

// watchSettings looks at what Bigtable and the archive's bucket hold, again and again until ctx
// ends. While a setting makes writes to Bigtable unsafe, the sink is halted and the stream is read
// on: what is read waits in the log.
//
// Rule 13: it takes two looks that agree to shut the gate.
func (t *table) watchSettings(ctx context.Context) error {
	defer t.gate.Looked()
	what := settings.Table{Source: t.Source, Target: t.Target, Families: t.row.Program.Families()}
	archive := settings.Table{Archived: t.Archive.On || t.Target == ""}
	for every := min(premisesEvery, t.o.Periods.Retry); ; {
		since := time.Now().Add(-every / 2)
		found, shut, answered := t.unsafeSetting(ctx, what, since)
		switch {
		case !answered:
			t.gate.Looked()
		case shut == nil:
			t.gate.Set(nil)
		default:
			t.gate.Set(&outcome.HaltError{Code: outcome.CodePremise, Reason: shut.Text()})
		}
		kept, _ := t.settings.Look(ctx, archive, since)
		found = append(slices.Clip(found), kept...)
		t.view.publish(func(s *snapshot) { s.settings = found })
		if failure.Pause(ctx, every) != nil {
			return nil
		}
	}
}

// unsafeSetting looks at settings, and once more where one makes writes unsafe. answered is false
// where the service did not answer the last look.
func (t *table) unsafeSetting(
	ctx context.Context, what settings.Table, since time.Time,
) (found protocol.Premises, shut *protocol.Premise, answered bool) {
	found, answered = t.settings.Look(ctx, what, since)
	if answered && found.Unsafe() != nil {
		found, answered = t.settings.Look(ctx, what, time.Now())
	}
	return found, found.Unsafe(), answered
}

// mayDelete blocks until no other process can own the log and the settings were looked at, and
// returns why nothing may be deleted from Bigtable; nil: it may.
func (t *table) mayDelete(ctx context.Context, l *life.Life) error {
	if err := t.gate.Enter(ctx); err != nil {
		return err
	}
	return l.MayWrite()
}

// watchPremises checks the premises repeatedly until ctx ends.
func (t *table) watchPremises(ctx context.Context) error {
	for failure.Pause(ctx, min(premisesEvery, t.o.Periods.Retry)) == nil {
		if err := t.checkPremises(ctx); err != nil {
			return err
		}
	}
	return nil
}

// premisesEvery is how often the settings of outside systems are looked at.
const premisesEvery = time.Minute
