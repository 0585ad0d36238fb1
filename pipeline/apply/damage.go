package apply

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

// damagedRanges are the gaps recorded for unreadable ranges of the log: the gap's reason, and
// whether it was accepted when the life began. resume, which accepts gaps, ends the life.
type damagedRanges struct{ accepted map[string]bool }

func newDamagedRanges(s *checkpoint.State) *damagedRanges {
	known := map[string]bool{}
	for i := range s.Gaps {
		if g := &s.Gaps[i]; g.Feed.Shard == "" {
			known[g.Reason] = g.Accepted
		}
	}
	return &damagedRanges{accepted: known}
}

// record handles entries of the log that the sink needs and cannot read. It stores them as a gap.
// It returns nil once an operator has accepted the gap, so that the sink goes on behind it; until
// then the sink's halt.
//
// Rule 8: what is lost is recorded before anything behind it is applied.
func (r *damagedRanges) record(ctx context.Context, o *Options, d *queue.DamageError, now change.Millis) error {
	reason := fmt.Sprintf("entries %d to %d of the log cannot be read", d.From, d.To)
	accepted, known := r.accepted[reason]
	if !known {
		gap := &checkpoint.Gap{Since: change.MillisOf(d.Since), Until: change.MillisOf(d.Until), Reason: reason, Found: now}
		if err := o.Append(ctx, gap); err != nil {
			return err
		}
		r.accepted[reason] = false
	}
	if accepted {
		return nil
	}
	return &outcome.HaltError{Code: "log_damaged", Entry: d.From, Reason: fmt.Sprintf("%s: the store is damaged. "+
		"What was stored between %s and %s is a gap; `replicator resume` accepts it, and the sink goes on behind it",
		reason, d.Since.UTC().Format(time.RFC3339), d.Until.UTC().Format(time.RFC3339))}
}
