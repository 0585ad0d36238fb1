package cutover

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// closedLately is how long ago an order may have been closed for its workers to be outwaited again:
// its date may be older than the moment at which it was stored. Where the log shows no end of the
// workers, they are outwaited whatever the date.
const closedLately = 5 * delegation.CloseWait

// endWorkers ends the workers of a table that is given up while they copy it, and outwaits them:
// the fence of the row ends each at its next reading. A table that was cut over has none.
//
// Rule 12: behind a fence nothing is written to Bigtable, by no process.
func (r *Retirement) endWorkers(ctx context.Context) error {
	if r.row == nil || r.sink == nil {
		return nil
	}
	fail := func(err error) error { return failure.With(failure.Unready, repeatHint, bigtable.Explain(err)) }
	for {
		seen, err := r.sink.LoadOrder(ctx, r.cfg.Pipeline, r.Table)
		if err != nil {
			return fail(err)
		}
		o, now := seen.Order, change.MillisOf(r.Now())
		if o == nil {
			return nil
		}
		if o.Open() {
			next := delegation.Closing(o, o.ID, o.Life, delegation.CloseCancel, now)
			if _, err := r.sink.SwapOrder(ctx, r.cfg.Pipeline, r.Table, o, next); err != nil {
				return fail(err)
			}
			continue
		}
		if r.delegated || now-o.Closed < change.Millis(closedLately/time.Millisecond) {
			r.Say("Workers may copy %s for %s yet: they are outwaited.", r.Table, delegation.CloseWait)
			if err := failure.Pause(ctx, delegation.CloseWait); err != nil {
				return err
			}
		}
		if err := r.sink.RemoveFileMarks(ctx, o); err != nil {
			return fail(err)
		}
		return nil
	}
}
