package audit

import (
	"context"
	"slices"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// doubt takes from the logs what this comparison can put an end to: copies of exports that DynamoDB
// could not be asked about. It is called before anything is read, so what the logs get later is not
// among it.
func (r *run) doubt(ctx context.Context) error {
	logs, err := r.pair.Running(ctx)
	if err != nil {
		return err
	}
	r.doubts = map[string][]string{}
	for _, l := range logs {
		if ids := l.State.Doubts(); len(ids) > 0 && slices.Contains(r.wanted, l.Table) {
			r.doubts[l.Table] = ids
		}
	}
	return nil
}

// confirm notes in the logs of the tables that were found equal that nothing was left out of their
// copies.
func (r *run) confirm(ctx context.Context) error {
	if len(r.doubts) == 0 {
		return nil
	}
	logs, err := r.pair.Running(ctx)
	if err != nil {
		return err
	}
	for _, l := range logs {
		ids := r.doubts[l.Table]
		equal := slices.ContainsFunc(r.result, func(t report.Table) bool {
			return t.Source == l.Table && t.Verdict == report.Equal
		})
		if len(ids) == 0 || !equal {
			continue
		}
		verified := &checkpoint.Verified{Gaps: ids}
		if _, err := l.Append(ctx, "note of the comparison", checkpoint.Control{Verified: verified}); err != nil {
			return err
		}
		r.say(l.Table + " was copied from an export that DynamoDB could not be asked about: the comparison shows that " +
			"nothing was left out.")
	}
	return nil
}
