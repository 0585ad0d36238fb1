package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

// holes returns the known gaps for unreadable ranges of the log: the reason of each gap, and whether it was accepted.
func holes(s *checkpoint.State) map[string]bool {
	known := map[string]bool{}
	for i := range s.Gaps {
		if g := &s.Gaps[i]; g.Feed.Shard == "" {
			known[g.Reason] = g.Accepted
		}
	}
	return known
}

// damaged handles unreadable entries of the log that this sink needs. It records them as a gap. While the gap is not
// accepted it returns the sink's halt; afterwards nil, and the sink goes on behind the entries.
//
// Rule 8: what is lost is recorded before anything behind it is applied.
func (a *applier) damaged(ctx context.Context, d *queue.DamageError) error {
	reason := fmt.Sprintf("entries %d to %d of the log cannot be read", d.From, d.To)
	accepted, known := a.holes[reason]
	if !known {
		gap := &checkpoint.Gap{Since: d.Since.UnixMilli(), Until: d.Until.UnixMilli(), Reason: reason, Found: a.t.now()}
		if err := a.in.find(ctx, gap); err != nil {
			return err
		}
		a.holes[reason] = false
	}
	if accepted {
		return nil
	}
	return &outcome.HaltError{Entry: d.From, Code: "log_damaged", Reason: fmt.Sprintf(
		"%s: the store is damaged. What was stored between %s and %s is a gap; `replicator resume` accepts it, and the sink goes on behind it",
		reason, d.Since.UTC().Format(time.RFC3339), d.Until.UTC().Format(time.RFC3339))}
}
