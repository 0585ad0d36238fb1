package ingest

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// storeRequest appends what was requested and replies to the goroutine that waits for it.
func (w *writer) storeRequest(ctx context.Context, r request) error {
	err := w.storeEntry(ctx, r.body)
	r.done <- err
	return err
}

// storeEntry appends an entry that the lister, a reader or a sink requested, unless it is out of
// date by now.
func (w *writer) storeEntry(ctx context.Context, body any) error {
	s := w.log.State()
	bodies := []any{body}
	switch b := body.(type) {
	case *checkpoint.Graph:
		if bodies = toAny(checkpoint.DiffListing(s, b, listingPart(w.o.MaxPayload))); len(bodies) == 0 {
			return nil
		}
	case *checkpoint.Start:
		bodies = toAny(checkpoint.SplitStart(b, listingPart(w.o.MaxPayload)))
	case *checkpoint.Gap:
		if !s.PrepareGap(b) {
			return nil
		}
	}
	for _, b := range bodies {
		if _, err := w.log.Append(ctx, b, nil); err != nil {
			return fmt.Errorf("append %s entry: %w", checkpoint.KindOf(b), err)
		}
	}
	w.observe()
	w.publishChanges()
	return nil
}

// publishChanges passes what changed in the state to the readers and the lister.
func (w *writer) publishChanges() {
	s := w.log.State()
	w.publish(s, s.TakeReadabilityChanges())
}

// publish gives the readers the shards that became readable among the changed ones, takes from them
// those that are not any more, and brings watermarks and lister up to date.
func (w *writer) publish(s *checkpoint.State, changed []*checkpoint.Shard) {
	for _, sh := range changed {
		w.watermarks.add(sh)
	}
	w.lister.update(s)
	w.handoff.offerShards(s, changed)
}

// observe reports what the log holds and how full it is.
func (w *writer) observe() { w.o.Observe(w.log.State(), w.pressure) }

// AppendStart appends where every shard starts, in as many entries as its messages need; only the
// last one counts (Rule 3).
func AppendStart(ctx context.Context, w *queue.Writer, start *checkpoint.Start, maxPayload int) error {
	for _, part := range checkpoint.SplitStart(start, listingPart(maxPayload)) {
		if _, err := w.Append(ctx, part, nil); err != nil {
			return fmt.Errorf("append start: %w", err)
		}
	}
	return nil
}

// listingPart returns how many bytes of shards go into one entry.
func listingPart(maxPayload int) int { return min(checkpoint.ListingPartBytes, maxPayload/2) }

func toAny[T any](all []T) (list []any) {
	for _, x := range all {
		list = append(list, x)
	}
	return list
}
