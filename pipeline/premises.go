package pipeline

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// codePremise is the halt of a table while a setting of an outside system makes it unsafe to write.
const codePremise = "premise"

// checkPremises asks once for the settings that the table relies on, publishes what is wrong, and
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
	t.view.premises.Store(&found)
	if p := found.Unsafe(); p != nil {
		return &outcome.HaltError{Code: codePremise, Reason: p.Text()}
	}
	return nil
}

// watchPremises asks again and again until ctx ends.
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
