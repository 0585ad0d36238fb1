package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// holes are the ranges of the log that cannot be read and that the state knows, by the reasons of their gaps: whether
// somebody has accepted them.
func holes(s *checkpoint.State) map[string]bool {
	known := map[string]bool{}
	for i := range s.Gaps {
		if g := &s.Gaps[i]; g.Feed.Shard == "" {
			known[g.Reason] = g.Accepted
		}
	}
	return known
}

// damaged deals with entries of the log that this sink needs and nobody can read. It records a gap, and returns nil once
// that is accepted: then the sink goes on behind them. Until then the sink halts.
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
	return &haltError{checkpoint.Halt{Sink: a.sink, Seq: d.From, Code: "log_damaged", Reason: fmt.Sprintf(
		"%s: the store is damaged. What was stored between %s and %s is a gap; `replicator resume` accepts it, and the sink goes on behind it",
		reason, d.Since.UTC().Format(time.RFC3339), d.Until.UTC().Format(time.RFC3339)), At: a.t.now()}}
}
